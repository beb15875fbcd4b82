"""One rollout: its skeleton, windows of its contents, calls as sent, pictures, and hostile contents."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from proctor.api.refusals import NotFoundError
from proctor.api.rollout_view import EventQuery, RolloutView
from proctor.config.prices import Price
from proctor.models.scripted import Step
from proctor.reading.diffs import build_diff
from proctor.reading.entries import read_entry
from proctor.reading.event_window import read_image_of_event, read_sent_call, read_window
from proctor.reading.replay_view import build_view
from proctor.reading.replays import ReplayCache, UnreadableRowError
from proctor.reading.search import Needle, find_hits
from proctor.store.replay import RolloutReplay
from tests.reading.conftest import Play
from tests.reading.records import indexed
from tests.reading.test_entries import VERIFIERS, row

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nnot really").decode()
LOOK_UP = {"id": "call-1", "name": "look_up", "arguments": '{"word": "pear"}'}


def decode(raw: bytes) -> RolloutReplay:
    return ReplayCache().decode(raw, 0, 0)


def view(raw: bytes) -> RolloutView:
    index = indexed([read_entry(raw).record])
    return build_view("run", index.entry(0), decode(raw), lambda _: Price(1.0, 1.0), len(raw))


@pytest.fixture(scope="module")
def with_tools(play: Play, outputs: Path) -> bytes:
    """A rollout in which the model calls a tool, and then answers."""
    script = [Step(text="Let me look.", reasoning="Hm, a pear.", tool_calls=[LOOK_UP]), Step(text="say 0")]
    folder = play(outputs, script, env_args={"tools": True}, num_examples=1, rollouts_per_example=1)
    return (folder / "results.jsonl").read_bytes().splitlines(keepends=True)[0]


def test_the_skeleton_has_a_line_for_each_event(with_tools: bytes) -> None:
    told = view(with_tools)

    assert [(event.role, event.turn, event.in_prompt) for event in told.events] == [
        ("user", None, True),
        ("assistant", 1, False),
        ("assistant", 2, False),
    ]
    asked = told.events[1]
    assert asked.reasoning_size == len("Hm, a pear.")
    (tool,) = asked.tools
    assert (tool.name, tool.arguments_preview) == ("look_up", '{"word": "pear"}')
    assert tool.result_preview == "pear means itself"
    assert asked.call is not None
    assert asked.call.index == 0
    assert asked.call.cost_usd is not None
    assert not asked.call.altered
    assert told.timing is not None
    assert told.timing.total > 0


def test_a_window_has_the_contents_of_its_events(with_tools: bytes) -> None:
    window = read_window(decode(with_tools), EventQuery(first=1, count=1))

    (event,) = window.items
    assert window.total == 3
    assert (event.index, event.text.head) == (1, "Let me look.")
    assert event.reasoning is not None
    assert event.reasoning.head == "Hm, a pear."
    assert event.tools[0].result is not None
    assert event.tools[0].result.head == "pear means itself"


def test_a_call_is_shown_as_it_was_sent(with_tools: bytes) -> None:
    sent = read_sent_call(decode(with_tools), 1, [{"name": "look_up"}])

    assert [message["role"] for message in sent.messages] == ["user", "assistant", "tool"]
    assert sent.reply["content"] == "say 0"
    assert sent.tools == [{"name": "look_up"}]
    with pytest.raises(NotFoundError, match="has no model call 9"):
        read_sent_call(decode(with_tools), 9, [])


def test_a_long_text_is_cut_in_its_middle_and_says_so() -> None:
    text = "a" * 6_000 + "b" * 6_000
    replay = decode(row(completion=[{"role": "assistant", "content": text}]))

    cut = read_window(replay, EventQuery(most_characters=1_000)).items[0].text
    whole = read_window(replay, EventQuery(most_characters=20_000)).items[0].text

    assert len(cut.head) + len(cut.tail) + cut.omitted == len(text)
    assert (cut.head[0], cut.tail[-1]) == ("a", "b")
    assert (whole.head, whole.omitted) == (text, 0)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
    ],
    ids=["openai", "anthropic", "responses"],
)
def test_a_picture_of_a_message_can_be_read(part: dict[str, Any]) -> None:
    replay = decode(row(prompt=[{"role": "user", "content": [{"type": "text", "text": "see"}, part]}]))

    (image,) = read_window(replay, EventQuery()).items[0].images

    assert (image.media_type, image.part, image.url) == ("image/png", 0, "")
    assert read_image_of_event(replay, 0, 0).data.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "url",
    [
        "https://tracker.example/pixel.png",
        "data:image/svg+xml;base64,PHN2Zz4=",
        "data:text/html;base64,PGI+",
        "data:image/png;base64,not*base64",
        "javascript:alert(1)",
    ],
)
def test_what_is_no_picture_of_this_rollout_is_never_served(url: str) -> None:
    part = {"type": "image_url", "image_url": {"url": url}}
    replay = decode(row(prompt=[{"role": "user", "content": [part]}]))

    with pytest.raises(NotFoundError, match="no picture"):
        read_image_of_event(replay, 0, 0)


HOSTILE: dict[str, Any] = {
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "ansi": "\x1b[31mred\x1b]8;;http://evil\x07link",
    "bidi": "\u202eevil\u2066",
    "nul": "a\x00b",
    "line": "x" * 10_000_000,
    "deep arguments": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "dollars": "it costs $5.00 and $6",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_texts(text: str) -> None:
    call = {"id": "1", "name": text[:50], "arguments": text}
    message = {"role": "assistant", "content": text, "reasoning_content": text, "tool_calls": [call]}
    raw = row(completion=[message, {"role": "tool", "tool_call_id": "1", "content": text}], info={"x": text})

    told = view(raw)
    (event,) = read_window(decode(raw), EventQuery(most_characters=100_000_000)).items

    assert event.text.head == text
    assert event.tools[0].arguments.head == text
    assert len(told.events[0].preview) <= 200
    assert len(json.dumps(told.info)) < 300_000


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": [3, None, "text", ["list"], {"role": {"a": 1}, "content": 7}]},
        {
            "completion": [
                {"role": "assistant", "tool_calls": [1, None, {"function": "x"}, {"arguments": [1]}]}
            ]
        },
        {"model_calls": [{"messages": -5, "reply": 99}, {"messages": [1, {"a": []}], "reply": "text"}]},
        {
            "model_calls": [
                {"role": "judge", "messages": 10**9, "reply": {"role": "assistant", "content": None}}
            ]
        },
    ],
    ids=["prompt", "tool calls", "places", "judge"],
)
def test_strange_shapes_are_shown_as_they_are(fields: dict[str, Any]) -> None:
    raw = row(**fields)

    told = view(raw)
    window = read_window(decode(raw), EventQuery(count=500))

    assert len(told.events) == window.total == len(window.items)
    for number in range(len(fields.get("model_calls", ()))):
        read_sent_call(decode(raw), number, [])


def test_a_row_nested_too_deeply_says_that_its_raw_form_can_be_read() -> None:
    raw = (
        b'{"example_id":0,"rollout":0,"outcome":"scored","reward":1,"info":'
        + b"[" * 9_999
        + b"]" * 9_999
        + b"}"
    )

    with pytest.raises(UnreadableRowError, match="raw form"):
        decode(raw)


def test_a_row_of_verifiers_has_a_timeline() -> None:
    replay = ReplayCache().decode(json.dumps(VERIFIERS).encode(), 3, 5)

    assert (replay.row.example_id, replay.row.rollout) == (3, 5)
    window = read_window(replay, EventQuery())
    assert [event.role for event in window.items] == ["user", "assistant", "assistant"]
    assert window.items[1].tools[0].result is not None
    assert window.items[1].tools[0].result.head == "2"


def test_ten_thousand_turns_are_read_in_well_under_a_minute() -> None:
    """A bound that only something quadratic misses, on any machine."""
    turns = 10_000
    completion = [{"role": "assistant", "content": f"turn {n}"} for n in range(turns)]
    calls = [
        {"messages": n, "reply": {"role": "assistant", "content": f"turn {turns - n}"}} for n in range(turns)
    ]
    raw = row(completion=completion, model_calls=calls)
    started = time.process_time()

    told = view(raw)

    assert len(told.events) == turns
    assert time.process_time() - started < 20


def test_a_diff_names_the_first_pair_that_differs(with_tools: bytes) -> None:
    other = with_tools.replace(b"pear means itself", b"pear means a fruit")

    diff = build_diff(decode(with_tools), decode(other), view(with_tools), view(other))

    assert diff.first == 1
    assert diff.pairs[1].differences == ["result"]
    assert [(pair.a, pair.b) for pair in diff.pairs] == [(0, 0), (1, 1), (2, 2)]


def test_a_search_finds_the_event_and_shows_what_is_around(with_tools: bytes) -> None:
    needle = Needle("MEANS itself")
    assert needle.may_be_in(with_tools)

    (hit,) = find_hits(needle, decode(with_tools), "key", 0)

    assert (hit.event, hit.before, hit.match, hit.after) == (1, "pear ", "means itself", "")
    assert not Needle("no such words").may_be_in(with_tools)


def test_names_of_fields_are_no_hits(with_tools: bytes) -> None:
    assert Needle("reasoning_content").may_be_in(with_tools)
    assert list(find_hits(Needle("reasoning_content"), decode(with_tools), "key", 0)) == []


@pytest.mark.parametrize("encode", [json.dumps, lambda value: json.dumps(value, ensure_ascii=False)])
def test_a_search_finds_letters_beyond_ascii_however_they_were_written(encode: Any) -> None:
    raw = encode(
        {**json.loads(row()), "completion": [{"role": "assistant", "content": 'Grüße "ÄÖ"'}]}
    ).encode()

    for words in ("grüße", 'GRÜSSE "', '"äö"'):
        needle = Needle(words)
        expected = words != 'GRÜSSE "'
        assert needle.may_be_in(raw) is expected
        assert bool(list(find_hits(needle, decode(raw), "key", 0))) is expected
