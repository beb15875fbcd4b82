"""A stored row is told in the order it happened, and two rows are laid side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from proctor.errors import Failure, StoreError
from proctor.rollout import Rollout
from proctor.store.alignment import compare_rollouts, split_shared_text
from proctor.store.replay import ReplayMessage, RolloutReplay, SideCall, decode_replay, has_altered_request
from proctor.store.rows import encode_row
from proctor.trace import Message, ModelCall, Reply, Trace

Made = Callable[..., Rollout]
BUSY = Failure("RateLimitError", "slow down")


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def says(text: str | None, *calls: tuple[str, str, str], **more: Any) -> Message:
    asked = [{"id": call_id, "name": name, "arguments": arguments} for call_id, name, arguments in calls]
    return {"role": "assistant", "content": text, **({"tool_calls": asked} if asked else {}), **more}


def result(call_id: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def call(sent: Sequence[Message], reply: Message | None, role: str = "agent") -> ModelCall:
    answered = None if reply is None else Reply(reply)
    failure = BUSY if reply is None else None
    return ModelCall(role, role, tuple(sent), {}, 1.0, reply=answered, failure=failure)


def seen(made: Made, *said: Message, calls: Sequence[ModelCall] = ()) -> RolloutReplay:
    trace = Trace(prompt=[said[0]], completion=list(said[1:]), calls=list(calls))
    return decode_replay(encode_row(made(trace=trace)))


def told(replayed: RolloutReplay) -> list[str]:
    return [
        f"{event.turn or ''}{event.role}" if isinstance(event, ReplayMessage) else f"({event.call.role})"
        for event in replayed.events
    ]


def test_results_stand_with_the_calls_they_answer_whatever_their_order(made: Made) -> None:
    asked = says("look", ("a", "price", '{"item": 1}'), ("b", "buy", "{}"))
    again = says(None, ("a", "price", "{nonsense"), ("c", "never", "{}"))
    shown = seen(
        made, user("go"), asked, result("b", "bought"), result("a", "1.5"), again, result("a", "bad")
    )

    _, first, second = shown.messages

    assert [(use.name, use.values, use.result["content"]) for use in first.tools] == [
        ("price", {"item": 1}, "1.5"),
        ("buy", {}, "bought"),
    ]
    assert [(use.values, use.result and use.result["content"]) for use in second.tools] == [
        (None, "bad"),
        ({}, None),
    ]


def test_a_result_that_nobody_asked_for_is_shown_all_the_same(made: Made) -> None:
    assert told(seen(made, user("go"), says("hm"), result("z", "surprise"))) == ["user", "1assistant", "tool"]


def test_every_call_stands_where_it_was_made(made: Made) -> None:
    question, first, again, second = user("go"), says("one"), user("on"), says("two")
    calls = [
        call([question], None),
        call([question], first),
        call([question, first, again], None),
        call([question, first, again], second),
        call([user("judge this")], says("yes"), "judge"),
    ]

    shown = seen(made, question, first, again, second, calls=calls)

    assert told(shown) == ["user", "(agent)", "1assistant", "user", "(agent)", "2assistant", "(judge)"]
    assert not any(has_altered_request(said) for said in shown.messages)
    assert shown.turns == 2


def test_a_call_that_was_sent_something_else_is_noticed(made: Made) -> None:
    question, first = user("go"), says("one")
    again, second = user("on"), says("two")
    calls = [call([question], first), call([user("summary"), again], second)]

    shown = seen(made, question, first, again, second, calls=calls)

    assert [has_altered_request(said) for said in shown.messages] == [False, False, False, True]


def test_a_copy_of_a_reply_keeps_its_call(made: Made) -> None:
    question, first = user("go"), says("one")
    shown = seen(made, question, dict(first), says("two, edited"), calls=[call([question], first)])

    assert [said.call is not None for said in shown.messages] == [False, True, False]
    assert not [event for event in shown.events if isinstance(event, SideCall)]


@pytest.mark.parametrize("odd", ["text", 7, {"role": "user"}, {"role": "user", "content": {"a": 1}}, None])
def test_no_message_is_too_odd(made: Made, odd: Any) -> None:
    assert len(seen(made, user("go"), odd).events) == 2


def test_images_are_named_and_not_spelled_out(made: Made) -> None:
    parts = [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5000}},
        {"type": "image_url", "image_url": {"url": "http://127.0.0.1/cat.png"}},
    ]
    text = seen(made, {"role": "user", "content": parts}).messages[0].text

    assert text.startswith("what is this?\n[image_url: image/png, 5,0")
    assert text.endswith("[image_url: http://127.0.0.1/cat.png]")


def test_a_row_of_another_shape_is_refused_in_one_sentence() -> None:
    with pytest.raises(StoreError, match=r"row cannot be read: .*--json shows it"):
        decode_replay(b'{"example_id": 1, "rollout": 0, "outcome": "scored", "timing": 3}\n')


# Side by side


def changes(a: RolloutReplay, b: RolloutReplay) -> list[list[str]]:
    return [[found.kind for found in pair.differences] for pair in compare_rollouts(a, b).pairs]


def test_rollouts_that_say_the_same_are_the_same_whatever_the_ids_of_their_calls(made: Made) -> None:
    a = seen(made, user("go"), says("", ("1", "buy", '{"a":1, "b":2}')), result("1", "ok"))
    b = seen(made, user("go"), says("", ("2", "buy", '{"b":2,"a":1}')), result("2", "ok"))

    assert compare_rollouts(a, b).first is None


def test_the_first_divergence_is_the_earliest_and_names_what_differs(made: Made) -> None:
    a = seen(
        made,
        user("go"),
        says("hm", ("1", "buy", '{"item":"apple","count":2}')),
        result("1", "two apples"),
        says("done"),
    )
    b = seen(
        made,
        user("go"),
        says("hm", ("1", "buy", '{"item":"apple"}')),
        result("1", "an apple"),
        says("more", ("2", "buy", '{"item":"apple"}')),
        result("2", "two apples"),
        says("done"),
    )

    both = compare_rollouts(a, b)

    assert both.same == 1
    assert both.first is not None
    first, second = both.first.differences
    assert (first.kind, first.tool, first.key, first.a, first.b) == ("arguments", "buy", "count", "2", None)
    assert (second.kind, second.a, second.b) == ("result", "two apples", "an apple")
    assert changes(a, b)[2:] == [["missing"], []], "the ends are aligned again"


def test_another_tool_other_words_and_another_end_are_told_apart(made: Made) -> None:
    calls = seen(made, user("go"), says("a", ("1", "buy", "{}")))
    other = seen(made, user("go"), says("a", ("1", "sell", "{}")))
    words = seen(made, user("go"), says("b", reasoning_content="because"))
    ended = seen(made, user("go"))

    assert changes(calls, other) == [[], ["tool"]]
    assert changes(calls, words) == [[], ["reasoning", "wording", "tool"]]
    assert changes(calls, ended) == [[], ["missing"]]
    assert changes(seen(made, user("stop")), ended) == [["wording"]]


def test_very_long_conversations_are_compared_in_time(made: Made) -> None:
    lines = [says(f"{number % 7}") for number in range(5_000)]
    a = seen(made, user("go"), *lines)
    b = seen(made, user("went"), *lines[1:])

    assert len(compare_rollouts(a, b).pairs) == 5_001


def test_words_that_only_one_side_has_are_found() -> None:
    assert split_shared_text("a red apple", "a green apple") == (
        [(True, "a "), (False, "red "), (True, "apple")],
        [(True, "a "), (False, "green "), (True, "apple")],
    )
    assert split_shared_text("nothing alike", "quite other words here") is None
