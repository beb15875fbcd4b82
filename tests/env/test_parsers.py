"""What a user of the strict parsers would notice; the others are compared with verifiers itself."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.env import parsers, xml_parser
from proctor.env.parsers import extract_boxed

Parser = partial(parsers.Parser, strict=True)
ThinkParser = partial(parsers.ThinkParser, strict=True)
MaybeThinkParser = partial(parsers.MaybeThinkParser, strict=True)
XMLParser = partial(xml_parser.XMLParser, strict=True)
XML = XMLParser(["reasoning", ("code", "answer")])
GOOD = "<reasoning>\n2 and 2\n</reasoning>\n<answer>\n4\n</answer>"

tags = [f"<{slash}{name}>" for name in ("reasoning", "code", "answer", "think") for slash in ("", "/")]
pieces = st.sampled_from([*tags, "\\boxed{", "\\", "{", "}", "\\{", " ", "\n", "4"])
hostile = st.lists(pieces | st.text(max_size=3), max_size=15).map("".join)


def said(*contents: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "?"}, *({"role": "assistant", "content": text} for text in contents)]


def test_the_answer_is_in_the_last_assistant_message_that_has_text() -> None:
    completion = [*said("first", "second", None, "", []), {"role": "tool", "content": "not this"}]

    assert Parser().parse_answer(completion) == "second"


def test_text_parts_are_joined_and_other_parts_left_out() -> None:
    parts = [{"type": "thinking", "text": "hm"}, {"type": "text", "text": "4"}, {"type": "text", "text": "2"}]

    assert Parser().parse_answer(said(parts)) == "42"


def test_without_an_assistant_message_there_is_no_answer() -> None:
    assert Parser().parse_answer([{"role": "user", "content": "4"}]) is None
    assert Parser().parse_answer("") is None
    assert XML.parse_answer([]) is None


def test_bare_text_is_one_assistant_message() -> None:
    assert Parser().get_assistant_messages("hi") == [{"role": "assistant", "content": "hi"}]
    assert Parser().parse_answer("hi") == "hi"


def test_an_extract_function_has_the_last_word() -> None:
    assert Parser(extract_fn=extract_boxed).parse_answer(r"so \boxed{4}") == "4"
    assert ThinkParser(extract_fn=int).parse_answer("<think>?</think> 4") == 4
    assert MaybeThinkParser(extract_fn=int).parse_answer(" 4 ") == 4
    assert XMLParser(["answer"], extract_fn=int).parse_answer("<answer>4</answer>") == 4


def test_the_format_reward_is_the_mean_over_messages_and_ignores_what_else_it_is_given() -> None:
    reward = Parser(extract_fn=extract_boxed).format_reward()

    assert reward(completion=said(r"\boxed{1}", "no box", None), answer="1", state={}) == 0.5
    assert reward([], answer="1") == 0.0


def test_fields_are_attributes_and_a_missing_one_is_none() -> None:
    parsed = XML.parse("<reasoning> because </reasoning> <answer>4</answer>")

    assert vars(parsed) == {"reasoning": "because", "code": None, "answer": "4"}
    assert XML.parse("<answer> 4</answer>", strip=False).answer == " 4"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>1</answer> no, <answer>2</answer>", "2"),
        ("I will use <answer> tags. <answer>2</answer>", "2"),
        ("<answer>2</answer> and a stray </answer>", "2"),
        ("<answer>2</answer> and more: <answer>3", "2"),
        ("<reasoning>never closed <answer>2</answer>", "2"),
        ("<reasoning>not <answer>1</answer></reasoning><answer>2</answer>", "2"),
        ("<answer>2</answer><reasoning>not <answer>1</answer></reasoning>", "2"),
        ("<reasoning>only here <answer>2</answer></reasoning>", "2"),
        ("<reasoning>not <answer>1</answer></reasoning><code>x</code>", None),
        ("<Answer>2</Answer>", None),
        ("<answer>", None),
        ("</answer><answer>", None),
    ],
)
def test_the_last_complete_answer_wins(text: str, answer: str | None) -> None:
    assert XML.parse_answer(text) == answer


@given(*[st.text(max_size=40)] * 2, st.sampled_from(["code", "answer"]))
def test_what_was_formatted_is_read_back(reasoning: str, last: str, name: str) -> None:
    text = XML.format(reasoning=reasoning, **{name: last})
    other = {"code": "answer", "answer": "code"}[name]

    assert vars(XML.parse(text)) == {"reasoning": reasoning.strip(), name: last.strip(), other: None}
    assert XML.format_score(text) == 1.0 or not (reasoning.strip() and last.strip())


@given(hostile, hostile)
def test_a_value_may_hold_any_tag_but_its_own(reasoning: str, answer: str) -> None:
    reasoning = reasoning.replace("reasoning>", "")
    answer = answer.replace("answer>", "")

    parsed = XML.parse(XML.format(reasoning=reasoning, answer=answer))

    assert vars(parsed) == {"reasoning": reasoning.strip(), "code": None, "answer": answer.strip()}


def test_a_value_that_could_not_be_read_back_is_refused() -> None:
    with pytest.raises(ValueError, match="its own tag"):
        XML.format(reasoning="a", answer="b</answer>")


def test_formatting_asks_for_one_value_per_field() -> None:
    with pytest.raises(ValueError, match=r"exactly one value for code \| answer, not 0"):
        XML.format(reasoning="a")
    with pytest.raises(ValueError, match="not 2"):
        XML.format(reasoning="a", code="b", answer="c")
    with pytest.raises(ValueError, match="'anser' is not a field"):
        XML.format(reasoning="a", anser="b")


def test_the_format_can_be_shown_to_a_model() -> None:
    assert XML.get_format_str() == (
        "<reasoning>\n...\n</reasoning>\n<[ code | answer ]>\n...\n</[ code | answer ]>"
    )
    assert XML.get_fields() == ["reasoning", "code"]


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (GOOD, 1.0),
        (f"\n {GOOD} \n", 1.0),
        (GOOD.replace("answer", "code"), 1.0),
        (f"Sure! {GOOD}", 0.8),
        (f"{GOOD} Done.", 0.8),
        (f"Sure! {GOOD} Done.", 0.6),
        (GOOD.replace("\n<answer>", " so <answer>"), 0.8),
        (GOOD.replace("2 and 2", "I write <answer> next"), 0.8),
        (f"{GOOD}</answer>", 0.6),
        (f"<answer>{GOOD}", 0.6),
        ("<answer>4</answer><reasoning>2 and 2</reasoning>", 0.4),
        ("<answer>4</answer>", 0.4),
        ("<reasoning>2 and 2</reasoning>", 0.4),
        (GOOD.replace("4", " "), 0.4),
        (f"{GOOD}\n<answer>5</answer>", 0.4),
        (f"{GOOD}\n<code>5</code>", 0.4),
        (f"{GOOD}\n{GOOD}", 0.0),
        ("<reasoning></reasoning><answer></answer>", 0.0),
        ("<reasoning><answer></reasoning></answer>", 0.4),
        ("<reasoning>" * 9 + "</answer>" * 9, 0.0),
        ("4", 0.0),
        ("", 0.0),
    ],
)
def test_the_xml_format_pays_only_for_what_was_kept(text: str, score: float) -> None:
    assert XML.format_score(text) == pytest.approx(score)


def test_tags_around_a_good_text_never_pay() -> None:
    for tag in ("<answer>", "</answer>", "<reasoning>", "</reasoning>", "<code>", "</code>"):
        assert XML.format_score(GOOD + tag) < 1.0
        assert XML.format_score(tag + GOOD) < 1.0


@given(hostile)
def test_only_the_exact_format_earns_everything(text: str) -> None:
    score = XML.format_score(text)

    assert 0.0 <= score <= 1.0
    if score == 1.0:
        given_values = {name: value for name, value in vars(XML.parse(text)).items() if value is not None}
        assert "".join(XML.format(**given_values).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("fields", "answer_field", "complaint"),
    [
        ([], "answer", "needs fields"),
        (["a", ()], "answer", "at least one name"),
        (["a", ("b", "a")], "answer", "a is given more than once"),
        (["a b"], "answer", "'a b' cannot be a tag"),
        (["reasoning"], "guess", "answer_field is 'guess'"),
    ],
)
def test_a_mistaken_parser_is_refused_when_it_is_made(fields: Any, answer_field: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        XMLParser(fields, answer_field)


def test_a_parser_without_an_answer_field_says_so_when_asked_for_the_answer() -> None:
    parser = XMLParser(["guess"])

    assert parser.parse("<guess>a</guess>").guess == "a"
    with pytest.raises(ValueError, match="give answer_field"):
        parser.parse_answer("<guess>a</guess>")


def test_a_finished_thought_is_required_or_merely_removed() -> None:
    assert ThinkParser().parse("<think>a</think>b</think> c ") == "c"
    assert ThinkParser().parse("c") is None
    assert MaybeThinkParser().parse("<think>a</think> c") == "c"
    assert MaybeThinkParser().parse(" c ") == "c"


def test_an_unfinished_thought_is_no_answer() -> None:
    assert ThinkParser().parse("<think>maybe 4") is None
    assert MaybeThinkParser().parse("<think>maybe 4") is None


@pytest.mark.parametrize(
    ("text", "strict", "lenient"),
    [
        ("<think>a</think>b", 1.0, 1.0),
        ("b", 0.0, 1.0),
        ("<think>a", 0.0, 0.0),
        ("a</think>b", 0.0, 0.0),
        ("<think>a</think>", 0.0, 0.0),
        ("x<think>a</think>b", 0.0, 0.0),
        ("<think>a</think>b</think>c", 0.0, 0.0),
    ],
)
def test_the_think_format_is_one_thought_and_then_an_answer(text: str, strict: float, lenient: float) -> None:
    assert ThinkParser().format_reward()(text) == strict
    assert MaybeThinkParser().format_reward()(said(text)) == lenient


@pytest.mark.parametrize(
    ("text", "boxed"),
    [
        (r"\boxed{1} then \boxed{ 2 }", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\left\{1, 2\right.}", r"\left\{1, 2\right."),
        (r"\boxed{1} and \boxed{2", "1"),
        (r"\boxed{a \boxed{2}}", "2"),
        (r"\boxed{a \boxed{2}", "2"),
        (r"} { \boxed {2} {", "2"),
        (r"escaped \\boxed{2}", "2"),
        (r"\boxed{}", ""),
        (r"\boxed", None),
        ("2", None),
    ],
)
def test_the_last_balanced_box_is_the_answer(text: str, boxed: str | None) -> None:
    assert extract_boxed(text) == boxed


def test_a_text_without_a_box_is_returned_if_asked() -> None:
    assert extract_boxed("2", or_text=True) == "2"
    assert extract_boxed(r"\boxed{3}", or_text=True) == "3"


balanced = st.recursive(
    st.text("ab12 +^_", max_size=5),
    lambda inner: st.lists(inner | inner.map(lambda text: "{" + text + "}"), max_size=4).map("".join),
    max_leaves=10,
)


@given(hostile, balanced, st.text("ab {", max_size=10))
def test_what_was_boxed_last_is_read_back(before: str, value: str, after: str) -> None:
    assert extract_boxed(before.rstrip("\\") + "\\boxed{" + value + "}" + after) == value.strip()


@given(hostile | st.text())
def test_no_text_makes_a_parser_fail(text: str) -> None:
    for parser in (Parser(), XML, ThinkParser(), MaybeThinkParser(), Parser(extract_fn=extract_boxed)):
        parser.parse(text)
        parser.parse_answer(text)
        assert 0.0 <= parser.format_reward()(said(text)) <= 1.0


@pytest.mark.parametrize(
    "piece",
    ["<answer>", "</answer>", "<answer></reasoning>", "<", "\\boxed{", "\\", "\\boxed ", "{", "<think>"],
)
def test_a_huge_hostile_text_is_read_in_linear_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    started = time.process_time()

    for parser in (XML, ThinkParser(), MaybeThinkParser(), Parser(extract_fn=extract_boxed)):
        parser.format_score(text)
        parser.parse(text)

    assert time.process_time() - started < 2.0
