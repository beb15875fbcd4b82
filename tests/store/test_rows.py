"""What somebody who opens results.jsonl finds there."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor import MultiTurnEnv, Rubric, Scripted, SingleTurnEnv, State, Step, ToolEnv, evaluate
from proctor.contracts import EnvironmentProtocol, Request
from proctor.env.echo import EchoEnvironment
from proctor.env.judge import JudgeRubric
from proctor.errors import Failure
from proctor.events import Event, RolloutsFinished
from proctor.rollout import Attempt, Rollout, Score, Span, Subscore, Timing
from proctor.store.folder import read_line, read_metadata
from proctor.store.rows import MEMBER, OPTIONAL, encode_row
from proctor.task import Task
from proctor.trace import Message, Trace, Usage

Row = dict[str, Any]
Make = Callable[..., Rollout]

EVERY_ROW_HAS = [
    "example_id",
    "task_hash",
    "rollout",
    "outcome",
    "prompt",
    "completion",
    "answer",
    "reward",
    "metrics",
    "error",
    "timing",
    "is_completed",
    "is_truncated",
    "stop_condition",
    "token_usage",
    "model_calls",
]


def rows_of(environment: EnvironmentProtocol, script: Any = (), **settings: Any) -> list[Row]:
    """The rows of an evaluation, by task and rollout."""
    model = script if isinstance(script, Scripted) else Scripted(script)
    result = asyncio.run(evaluate(environment, model, **settings))
    rows = [json.loads(line) for line in (result.folder / "results.jsonl").read_text().splitlines()]
    return sorted(rows, key=lambda row: (row["example_id"], row["rollout"]))


def row_of(rollout: Rollout) -> Row:
    row: Row = json.loads(encode_row(rollout))
    return row


def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word} is a word"


# Names and shapes


def test_a_row_has_exactly_the_documented_fields() -> None:
    (row,) = rows_of(EchoEnvironment("say it"), max_tokens=5)

    assert list(row) == EVERY_ROW_HAS
    assert row["example_id"] == 0
    assert row["rollout"] == 0
    assert row["outcome"] == "scored"
    assert row["prompt"] == [{"role": "user", "content": "say it"}]
    assert row["completion"] == [{"role": "assistant", "content": "say it"}]
    assert row["answer"] == "say it"
    assert (row["reward"], row["metrics"]) == (1.0, {"repeats": 1.0})
    assert row["error"] is None
    assert (row["is_completed"], row["is_truncated"]) == (True, False)
    assert row["stop_condition"] == "max_turns_reached"
    assert row["token_usage"] == {
        "input_tokens": 2,
        "output_tokens": 2,
        "final_input_tokens": 2,
        "final_output_tokens": 2,
    }


def test_the_documentation_names_every_field() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "results.md").read_text()
    table = guide.partition("## A row")[2].partition("## ")[0]
    first_cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)

    named = {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}

    assert named == {*EVERY_ROW_HAS, *OPTIONAL, MEMBER}


def test_a_row_tells_how_long_every_phase_took(made: Make) -> None:
    assert row_of(made())["timing"] == {
        "start_time": 1.0,
        "setup": {"start": 1.0, "end": 1.5, "duration": 0.5},
        "generation": {"start": 1.5, "end": 3.0, "duration": 1.5},
        "scoring": {"start": 3.0, "end": 3.25, "duration": 0.25},
        "model": {"duration": 0},
        "total": 2.5,
        "overhead": 2.5,
    }


def test_a_row_tells_of_every_model_call() -> None:
    (row,) = rows_of(EchoEnvironment("say it"), temperature=0.5)

    (call,) = row["model_calls"]
    assert call.pop("start") > 1e9
    assert 0 <= call.pop("seconds") < 5
    assert call == {
        "role": "agent",
        "model": "scripted",
        "messages": 1,
        "sampling": {"temperature": 0.5},
        "reply": 1,
        "finish_reason": "stop",
        "usage": {"input_tokens": 2, "output_tokens": 2},
        "served_model": "scripted",
    }


def test_a_failed_rollout_has_no_reward_but_an_error_with_its_chain_and_place() -> None:
    def broken(completion: list[Message]) -> float:
        raise ValueError("the dog ate it")

    (row,) = rows_of(SingleTurnEnv([{"question": "q"}], rubric=Rubric(broken)), ["a"])

    assert (row["outcome"], row["reward"], row["metrics"]) == ("grader_error", None, {})
    assert row["is_completed"] is False
    assert row["completion"] == [{"role": "assistant", "content": "a"}]
    error = row["error"]
    assert error["error"] == "GraderError"
    assert "the dog ate it" in error["message"]
    assert error["error_chain_str"] == "GraderError -> ValueError"
    assert error["phase"] == "scoring"
    assert error["traceback"]


def test_fields_that_most_rollouts_do_not_need_come_only_when_they_say_something(made: Make) -> None:
    failure = Failure("OverloadedError", "busy", "generation", "OverloadedError")
    row = row_of(
        made(
            info={"level": 3},
            score=Score(1.0, {}, (Subscore("style", 0.5, 2.0),)),
            earlier=(Attempt("model_error", failure, 5.0, 0.25, Usage(9)),),
            cleanup_failure=Failure("RuntimeError", "still open", "cleanup"),
            group_size=3,
        )
    )

    assert set(row) - set(EVERY_ROW_HAS) == {
        "info",
        "subscores",
        "attempts",
        "earlier_attempts",
        "cleanup_error",
        "group_size",
    }
    assert row["info"] == {"level": 3}
    assert row["subscores"] == [{"name": "style", "value": 0.5, "weight": 2.0}]
    assert row["attempts"] == 2
    assert row["earlier_attempts"] == [
        {
            "outcome": "model_error",
            "error": {
                "error": "OverloadedError",
                "message": "busy",
                "error_chain_str": "OverloadedError",
                "phase": "generation",
            },
            "start": 5.0,
            "seconds": 0.25,
            "usage": {"input_tokens": 9},
        }
    ]
    assert row["cleanup_error"]["message"] == "still open"
    assert row["group_size"] == 3


def test_tokens_of_a_judge_are_told_apart_from_those_of_the_model() -> None:
    judged = JudgeRubric(judge=Scripted(["yes"], name="the-judge"))

    (row,) = rows_of(
        SingleTurnEnv([{"question": "Is it?", "answer": "yes"}], rubric=judged), ["it is so indeed"]
    )

    assert [call["role"] for call in row["model_calls"]] == ["agent", "judge"]
    assert row["token_usage"]["output_tokens"] == 4
    assert row["other_usage"]["the-judge"]["output_tokens"] == 1


# Tools


def test_tool_calls_are_objects() -> None:
    script = [Step(tool_calls=[{"name": "look_up", "arguments": {"word": "dog"}}]), "It is a word."]

    (row,) = rows_of(ToolEnv([{"question": "What is a dog?"}], tools=[look_up], rubric=Rubric()), script)

    called, told, said = row["completion"]
    assert called["tool_calls"] == [{"id": "call_0", "name": "look_up", "arguments": '{"word":"dog"}'}]
    assert (told["role"], told["content"]) == ("tool", "dog is a word")
    assert said["content"] == "It is a word."


def test_tools_that_all_rollouts_share_are_told_once_in_the_metadata(tmp_path: Path) -> None:
    env = ToolEnv([{"question": f"q {number}"} for number in range(3)], tools=[look_up], rubric=Rubric())
    told_at_first: list[Any] = []

    def listen(event: Event) -> None:
        if isinstance(event, RolloutsFinished) and not told_at_first:
            told_at_first.append(read_metadata(next(tmp_path.glob("evals/*/*")))["tools"])

    result = asyncio.run(evaluate(env, Scripted(["a"]), output_dir=str(tmp_path), listeners=[listen]))

    (tool,) = read_metadata(result.folder)["tools"]
    assert (tool["name"], tool["description"]) == ("look_up", "Look a word up.")
    assert tool["parameters"]["required"] == ["word"]
    lines = (result.folder / "results.jsonl").read_text().splitlines()
    assert len(lines) == 3
    assert not any("tool_defs" in json.loads(line) for line in lines)
    assert told_at_first == [[tool]], "a crash after the first row would have lost the tools"


def test_a_rollout_with_tools_of_its_own_tells_them_itself() -> None:
    class Growing(ToolEnv):
        def tool_specs(self, state: State) -> Any:
            specs = list(super().tool_specs(state))
            return specs * 2 if state["example_id"] == 1 else specs

    env = Growing([{"question": "a"}, {"question": "b"}], tools=[look_up], rubric=Rubric())

    first, second = rows_of(env, ["x"], max_concurrent=1)

    assert "tool_defs" not in first
    assert [tool["name"] for tool in second["tool_defs"]] == ["look_up", "look_up"]


# Long conversations


class Counting(MultiTurnEnv):
    def env_response(self, messages: list[Message], state: State) -> str:  # type: ignore[override]
        return f"and then? ({state['turn']}) " + "x" * 200


class Forgetful(Counting):
    async def get_prompt_messages(self, state: State) -> list[Message]:
        return [*state["prompt"], *state["completion"]][-2:]


def requests_told_by(row: Mapping[str, Any]) -> list[list[Message]]:
    """The requests that a reader of the row can put together again."""
    conversation = [*row["prompt"], *row["completion"]]
    told = [call["messages"] for call in row["model_calls"]]
    return [conversation[:each] if isinstance(each, int) else each for each in told]


def replies_told_by(row: Mapping[str, Any]) -> list[Message]:
    conversation = [*row["prompt"], *row["completion"]]
    replies = [call["reply"] for call in row["model_calls"]]
    return [conversation[reply] if isinstance(reply, int) else reply for reply in replies]


def sent(requests: list[Request]) -> list[list[Message]]:
    return [list(request.messages) for request in requests]


@pytest.mark.parametrize("kind", [Counting, Forgetful])
def test_every_request_and_reply_can_be_put_together_again(kind: type[Counting]) -> None:
    model = Scripted([f"answer {number}" for number in range(6)])

    (row,) = rows_of(kind([{"question": "go"}], rubric=Rubric(), max_turns=6), model)

    assert len(model.requests) == 6
    assert requests_told_by(row) == sent(model.requests)
    assert [reply["content"] for reply in replies_told_by(row)] == [f"answer {n}" for n in range(6)]


def test_a_conversation_of_many_turns_is_stored_once_and_not_once_a_turn() -> None:
    short, long = (
        len(json.dumps(rows_of(Counting([{"question": "go"}], rubric=Rubric(), max_turns=turns), ["a"])[0]))
        for turns in (10, 40)
    )

    assert long < 4.2 * short


def test_a_failed_call_keeps_its_request() -> None:
    model = Scripted(["fine", Step(error="refused", text="not that")])

    (row,) = rows_of(Counting([{"question": "go"}], rubric=Rubric(), max_turns=3), model)

    assert row["outcome"] == "model_error"
    assert requests_told_by(row) == sent(model.requests)
    assert "reply" not in row["model_calls"][1]
    assert row["model_calls"][1]["error"]["message"] == "not that"


# Values that are no JSON


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("I will not be shown")

    __repr__ = __str__


class Plain:
    def __str__(self) -> str:
        return "plain as day"


class Torn(Mapping[str, int]):
    """A mapping that breaks while it is read."""

    def __getitem__(self, key: str) -> int:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        yield "a"
        raise OSError("torn")

    def __len__(self) -> int:
        return 1


@dataclasses.dataclass
class Point:
    x: float
    y: object


class Spot(msgspec.Struct):
    x: float
    y: Any


def ring() -> list[Any]:
    """A list that holds itself, twice over."""
    inner: list[Any] = []
    inner += [inner, inner]
    return inner


def crowd(size: int = 30) -> list[Any]:
    """Everybody holds everybody: more paths than anyone can walk."""
    people: list[list[Any]] = [[] for _ in range(size)]
    for person in people:
        person += people
    return people


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (b"bytes", "bytes"),
        (b"\xff\x00", "\\xff\x00"),
        ({7}, [7]),
        ((1, "two"), [1, "two"]),
        ("half \ud83d a smile", "half ? a smile"),
        ({1: "a", None: "b", (2, 3): "c", 1.5: "d"}, {"1": "a", "None": "b", "(2, 3)": "c", "1.5": "d"}),
        ({"\udc80": 1}, {"?": 1}),
        (10**30, 10**30),
        (Plain(), "plain as day"),
        ({"deep": [Plain(), {b"x"}]}, {"deep": ["plain as day", ["x"]]}),
        (Point(1.0, float("nan")), {"x": 1.0, "y": "nan"}),
        (Spot(1.0, {1: 2}), {"x": 1.0, "y": {"1": 2}}),
        (datetime.date(2025, 1, 31), "2025-01-31"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_state_column_that_is_no_json_becomes_text(made: Make, value: Any, stored: Any) -> None:
    assert row_of(made(columns={"seen": value}))["seen"] == stored


@pytest.mark.parametrize(
    "value",
    [
        Unspeakable(),
        {"a": [Unspeakable()]},
        {Unspeakable(): 1},
        Torn(),
        ring(),
        crowd(),
        nested(90),
        nested(5_000),
        10**5_000,
        ["\ud800" * 10],
    ],
    ids=[
        "unspeakable",
        "in a list",
        "as a key",
        "torn",
        "ring",
        "crowd",
        "deep",
        "abyss",
        "huge",
        "surrogates",
    ],
)
def test_no_value_keeps_a_row_from_being_stored_and_read(made: Make, value: Any) -> None:
    line = encode_row(made(columns={"seen": value, "and": 1}))

    assert json.loads(line)["and"] == 1
    assert read_line(line) is not None


@pytest.mark.parametrize("value", [{"a": "\ud800"}, {"a": Unspeakable()}, {"a": ring()}], ids=["a", "b", "c"])
def test_messages_of_an_environment_may_hold_anything(made: Make, value: Any) -> None:
    trace = Trace(prompt=[{"role": "user", "content": [value]}])

    line = encode_row(made(trace=trace))

    assert read_line(line) is not None
    assert json.loads(line)["prompt"][0]["role"] == "user"


# State columns


def test_state_columns_stand_beside_the_fields(made: Make) -> None:
    class Noting(SingleTurnEnv):
        async def setup_state(self, state: State) -> None:
            state["secret"] = {"number": 7}

    env = Noting([{"question": "q", "level": 3}], rubric=Rubric())

    (row,) = rows_of(env, ["a"], state_columns=["secret", "level", "turn", "nowhere"])

    assert list(row) == [*EVERY_ROW_HAS, "secret", "level", "turn"]
    assert (row["secret"], row["level"], row["turn"]) == ({"number": 7}, 3, 1)


@pytest.mark.parametrize("name", [*EVERY_ROW_HAS, "info", "attempts", "cleanup_error", "other_usage"])
def test_a_state_column_never_passes_for_a_field(made: Make, name: str) -> None:
    plain, line = row_of(made()), encode_row(made(columns={name: "mine"}))

    row = json.loads(line)
    assert row.pop(f"state_{name}") == "mine"
    assert row == plain
    assert read_line(line) is not None


def test_a_state_column_never_overwrites_another(made: Make) -> None:
    both = [("state_reward", "first"), ("reward", "second")]

    for order in itertools.permutations(both):
        row = row_of(made(columns=dict(order)))
        assert row["reward"] == 1.0
        assert sorted(row[name] for name in row if name.startswith("state_")) == ["first", "second"]


any_text = st.text(st.characters(exclude_categories=()))
simple = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | any_text
    | st.binary()
    | st.complex_numbers()
    | st.dates()
    | st.builds(Plain)
    | st.builds(Unspeakable)
)
hashable = st.none() | st.integers() | any_text | st.tuples(st.integers(), any_text) | st.builds(Unspeakable)
anything = st.recursive(
    simple,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(hashable, inner)
        | st.sets(hashable)
        | st.builds(Point, st.floats(), inner)
        | st.builds(Spot, st.floats(), inner)
    ),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given(columns=st.dictionaries(any_text | st.sampled_from(EVERY_ROW_HAS), anything, max_size=4))
def test_whatever_is_in_the_state_a_row_is_one_line_of_json(columns: dict[str, Any]) -> None:
    rollout = Rollout(
        task=Task(id="t"),
        number=2,
        outcome="scored",
        trace=Trace(),
        timing=Timing(Span(0, 0), Span(0, 0), Span(0, 0), 0),
        score=Score(0.5),
        columns=columns,
    )

    line = encode_row(rollout)

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    row = json.loads(line, parse_constant=pytest.fail)
    assert (row["example_id"], row["rollout"], row["reward"]) == ("t", 2, 0.5)
    stored = read_line(line)
    assert stored is not None
    assert (stored.key, stored.outcome, stored.reward) == (("t", 2), "scored", 0.5)
