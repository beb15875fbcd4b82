"""The conformance table: every frame of the channel, good and bad, as it stands on a socket.

A row is a conversation: who says what, and what comes back. `$name` stands for a value that is kept where it
is first seen; `ANY` for anything; a pattern for a text that it describes. Where another server is known to
answer otherwise, the step says how in `theirs`, and the row says why we differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ANY = re.compile("")
"""Anything at all."""
MIB = 1024 * 1024
SAME = object()


@dataclass(frozen=True)
class Step:
    """Something is sent, or heard, on one connection."""

    who: str
    sent: bytes | dict[str, Any] | None = None
    """A frame, or bytes as they are."""
    heard: tuple[Any, ...] = ()
    """The frames that come back."""
    theirs: Any = SAME
    """What comes back from the others, where that is not the same."""
    hangs_up: bool = False
    ends: bool = False
    """The connection is closed by the server."""
    they_end: bool = False
    """By theirs, although not by ours."""
    again: bool = False
    """Said again until the answer is right: there is something to wait for."""
    in_bytes: bool = False
    """Sent byte by byte."""


@dataclass(frozen=True)
class Row:
    """One conversation."""

    name: str
    steps: Sequence[Step]
    differs: str = ""
    """Why we answer otherwise than others do."""
    ours_only: str = ""
    """Why others are not asked."""


def frame(method: str, params: Any = None, id: Any = 1) -> dict[str, Any]:  # noqa: A002
    sent: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        sent["params"] = params
    if id is not None:
        sent["id"] = id
    return sent


def result(value: Any, id: Any = 1) -> dict[str, Any]:  # noqa: A002
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error(code: int, message: Any = ANY, id: Any = 1) -> dict[str, Any]:  # noqa: A002
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def ask(who: str, method: str, params: Any, reply: Any, *, id: Any = 1, **how: Any) -> Step:  # noqa: A002
    return Step(who, frame(method, params, id), (reply,), **how)


def raw(who: str, sent: bytes, *heard: Any, **how: Any) -> Step:
    return Step(who, sent, heard, **how)


def send(who: str, method: str, params: Any, id: Any = 1) -> Step:  # noqa: A002
    """Without waiting for what comes back."""
    return Step(who, frame(method, params, id))


def hear(who: str, *heard: Any, **how: Any) -> Step:
    return Step(who, None, heard, **how)


def hang_up(who: str) -> Step:
    return Step(who, hangs_up=True)


def line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


GREETING = {"session_id": re.compile("sess-[0-9a-f]+"), "env": {"name": "room", "version": "1.2.3"}}
HELLO = result({**GREETING, "bindings": []})
KEPT = result({**GREETING, "session_id": "$session", "bindings": []})
PEAR = {"id": "count", "args": {"word": "pear"}}
PROMPT = result({"prompt": "How many r in pear?"})
NO_TASK = error(-32600, "no task in progress")
BYE = ask("a", "bye", {}, result({"goodbye": True}), ends=True)
CANCELLED = result({"cancelled": True})

HELLOS = [
    Row("hello", [ask("a", "hello", {}, HELLO), BYE]),
    Row("hello without params", [Step("a", frame("hello"), (HELLO,)), BYE]),
    Row("hello with a text for an id", [ask("a", "hello", {}, {**HELLO, "id": "one"}, id="one"), BYE]),
    Row("a repeated hello is a heartbeat", [ask("a", "hello", {}, KEPT), ask("a", "hello", {}, KEPT), BYE]),
    Row(
        "a hello of one's own session is a heartbeat",
        [ask("a", "hello", {}, KEPT), ask("a", "hello", {"session_id": "$session"}, KEPT), BYE],
    ),
    Row("hello is not needed", [ask("a", "tasks.start", PEAR, PROMPT), BYE]),
    Row(
        "a parked session is gone on with",
        [
            ask("a", "hello", {}, KEPT),
            ask("a", "tasks.start", PEAR, PROMPT),
            hang_up("a"),
            ask("b", "hello", {"session_id": "$session"}, KEPT, again=True),
            ask("b", "tasks.grade", {"answer": "1"}, result({"score": 1.0})),
        ],
    ),
    Row(
        "an unknown session",
        [ask("a", "hello", {"session_id": "sess-x"}, error(-32600, "unknown session: 'sess-x'")), BYE],
    ),
    Row(
        "a session without a task is not parked",
        [
            ask("a", "hello", {}, KEPT),
            hang_up("a"),
            ask(
                "b",
                "hello",
                {"session_id": "$session"},
                error(-32600, re.compile("unknown session: 'sess-")),
                again=True,
            ),
        ],
    ),
    Row(
        "a session that somebody is connected to",
        [
            ask("a", "hello", {}, KEPT),
            ask("a", "tasks.start", PEAR, PROMPT),
            ask(
                "b",
                "hello",
                {"session_id": "$session"},
                error(-32600, re.compile("^session 'sess-.*' has a live connection$")),
            ),
            BYE,
        ],
    ),
    *(
        Row(
            f"a session_id that is {bad!r}",
            [
                ask("a", "hello", {"session_id": bad}, error(-32602, "hello: 'session_id' must be a string")),
                BYE,
            ],
        )
        for bad in (7, True, ["sess-1"], {"a": 1})
    ),
    *(
        Row(f"{name} that are {bad!r}", [ask("a", "hello", {name: bad}, error(-32602, message)), BYE])
        for name in ("workspace_routes", "connections")
        for bad, message in (
            ({}, f"hello: '{name}' must be a list"),
            (None, f"hello: '{name}' must be a list"),
            ([1], re.compile("^hello: ")),
            ([{"name": "x"}], re.compile("^hello: ")),
        )
    ),
]

LISTS = [
    Row(
        "tasks.list names every template with its inputs",
        [
            ask(
                "a",
                "tasks.list",
                {},
                result({"tasks": [ANY] * 14}),
            ),
            BYE,
        ],
    ),
]

STARTS = [
    Row("start", [ask("a", "tasks.start", PEAR, PROMPT), BYE]),
    Row(
        "start with messages",
        [
            ask(
                "a",
                "tasks.start",
                {"id": "talk"},
                result(
                    {"prompt": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]}
                ),
            ),
            BYE,
        ],
    ),
    Row(
        "start with bindings",
        [
            ask(
                "a",
                "tasks.start",
                {"id": "bound"},
                result({"prompt": "look", "bindings": {"tools": {"only": ["a"]}}}),
            ),
            BYE,
        ],
    ),
    Row(
        "start without args", [ask("a", "tasks.start", {"id": "graded"}, result({"prompt": "anything"})), BYE]
    ),
    Row(
        "start with args of null",
        [ask("a", "tasks.start", {"id": "graded", "args": None}, result({"prompt": "anything"})), BYE],
    ),
    Row(
        "start of an unknown task",
        [ask("a", "tasks.start", {"id": "coutn"}, error(-32602, "unknown task: 'coutn'")), BYE],
    ),
    *(
        Row(
            f"start of {bad!r}",
            [ask("a", "tasks.start", {"id": bad}, error(-32602, "tasks.start: 'id' must be a string")), BYE],
        )
        for bad in (None, 3, ["count"], {"id": "count"})
    ),
    Row(
        "start of nothing",
        [ask("a", "tasks.start", {}, error(-32602, "tasks.start: 'id' must be a string")), BYE],
    ),
    *(
        Row(
            f"args that are {bad!r}",
            [
                ask(
                    "a",
                    "tasks.start",
                    {"id": "count", "args": bad},
                    error(-32602, "tasks.start: 'args' must be an object"),
                ),
                BYE,
            ],
        )
        for bad in (["pear"], "pear", 3, False)
    ),
    Row("args that are missing", [ask("a", "tasks.start", {"id": "count", "args": {}}, error(-32000)), BYE]),
    Row(
        "args that nobody asked for",
        [ask("a", "tasks.start", {"id": "count", "args": {"word": "pear", "wrod": 1}}, error(-32000)), BYE],
    ),
    Row(
        "args of the wrong type",
        [ask("a", "tasks.start", {"id": "large", "args": {"size": "many"}}, error(-32000)), BYE],
    ),
    Row(
        "a template that raises before its prompt",
        [
            ask("a", "tasks.start", {"id": "stumbling"}, error(-32000, "no prompt today")),
            ask("a", "tasks.grade", {}, NO_TASK),
            BYE,
        ],
    ),
    Row(
        "a template that ends without a prompt",
        [ask("a", "tasks.start", {"id": "never"}, error(-32000)), ask("a", "tasks.grade", {}, NO_TASK), BYE],
    ),
    Row(
        "a second start gives up the first",
        [
            ask("a", "tasks.start", {"id": "graded"}, result({"prompt": "anything"})),
            ask("a", "tasks.start", PEAR, PROMPT),
            ask("a", "tasks.grade", {"answer": "1"}, result({"score": 1.0})),
            ask("a", "tasks.grade", {"answer": "1"}, NO_TASK),
            BYE,
        ],
    ),
]

GRADES = [
    Row(
        "grade",
        [
            ask("a", "tasks.start", PEAR, PROMPT),
            ask("a", "tasks.grade", {"answer": "1"}, result({"score": 1.0})),
            BYE,
        ],
    ),
    Row(
        "grade of a wrong answer",
        [
            ask("a", "tasks.start", PEAR, PROMPT),
            ask("a", "tasks.grade", {"answer": "2"}, result({"score": 0.0})),
            BYE,
        ],
    ),
    Row("grade without a task", [ask("a", "tasks.grade", {"answer": "1"}, NO_TASK), BYE]),
    Row(
        "a second grade",
        [
            ask("a", "tasks.start", PEAR, PROMPT),
            ask("a", "tasks.grade", {"answer": "1"}, result({"score": 1.0})),
            ask("a", "tasks.grade", {"answer": "1"}, NO_TASK),
            BYE,
        ],
    ),
    Row(
        "a grade that says more than its score",
        [
            ask("a", "tasks.start", {"id": "graded"}, result({"prompt": "anything"})),
            ask(
                "a",
                "tasks.grade",
                {"answer": ""},
                result(
                    {
                        "score": 0.25,
                        "done": True,
                        "content": "a remark",
                        "info": {"seen": 1},
                        "isError": False,
                        "subscores": [],
                    }
                ),
                theirs=result({"score": 0.25, "content": "a remark", "info": {"seen": 1}}),
            ),
            BYE,
        ],
        differs="a score that says more has one shape, whether the template yielded a dict or a Score",
    ),
    Row(
        "grade adopts the only task that is parked",
        [
            ask("a", "hello", {}, KEPT),
            ask("a", "tasks.start", PEAR, PROMPT),
            hang_up("a"),
            ask("b", "tasks.grade", {"answer": "1"}, result({"score": 1.0}), again=True),
            ask(
                "b",
                "hello",
                {"session_id": "$session"},
                error(-32600, re.compile("^unknown session: 'sess-")),
            ),
        ],
    ),
    Row(
        "grade does not choose among several that are parked",
        [
            ask("a", "hello", {}, KEPT),
            ask("a", "tasks.start", PEAR, PROMPT),
            ask("b", "hello", {}, result({**GREETING, "session_id": "$other", "bindings": []})),
            ask("b", "tasks.start", PEAR, PROMPT),
            hang_up("a"),
            hang_up("b"),
            ask(
                "c",
                "tasks.grade",
                {"answer": "1"},
                error(
                    -32600,
                    re.compile(
                        r"^2 parked sessions \(sess-\w+, sess-\w+\); "
                        "resume one by sending hello with its session_id$"
                    ),
                ),
                again=True,
            ),
            ask("c", "hello", {"session_id": "$session"}, KEPT),
            ask("c", "tasks.grade", {"answer": "1"}, result({"score": 1.0})),
            ask("c", "tasks.grade", {"answer": "1"}, result({"score": 1.0})),
        ],
    ),
    Row(
        "a score that is no number",
        [
            ask("a", "tasks.start", {"id": "endless"}, result({"prompt": "now"})),
            ask("a", "tasks.grade", {}, error(-32000)),
            BYE,
        ],
    ),
    Row(
        "a score that is a text",
        [
            ask("a", "tasks.start", {"id": "wordy"}, result({"prompt": "now"})),
            ask("a", "tasks.grade", {}, error(-32000)),
            BYE,
        ],
    ),
    Row(
        "a template that ends after its prompt",
        [
            ask("a", "tasks.start", {"id": "once"}, result({"prompt": "now"})),
            ask(
                "a",
                "tasks.grade",
                {},
                error(-32000, "template 'once' ended without yielding a reward"),
                theirs=result({"score": 0.0}),
            ),
            BYE,
        ],
        differs="a grader that gives no reward is an error, and an error is no zero",
    ),
    Row(
        "a template that raises while grading",
        [
            ask("a", "tasks.start", {"id": "failing"}, result({"prompt": "now"})),
            ask("a", "tasks.grade", {}, error(-32000, "no grade today")),
            ask("a", "tasks.grade", {}, NO_TASK),
            BYE,
        ],
    ),
    Row(
        "a template that raises while it is closed",
        [
            ask("a", "tasks.start", {"id": "untidy"}, result({"prompt": "now"})),
            ask("a", "tasks.grade", {}, result({"score": 1.0})),
            BYE,
        ],
    ),
]

CANCELS = [
    Row("cancel of nothing", [ask("a", "tasks.cancel", {}, CANCELLED), BYE]),
    Row(
        "cancel of a started task",
        [
            ask("a", "tasks.start", PEAR, PROMPT),
            ask("a", "tasks.cancel", {}, CANCELLED),
            ask("a", "tasks.grade", {}, NO_TASK),
            BYE,
        ],
    ),
    Row(
        "cancel during a start",
        [
            send("a", "tasks.start", {"id": "late", "args": {"seconds": 60}}, id=2),
            ask("a", "tasks.cancel", {}, error(-32000, "tasks.cancel interrupted the task", id=2)),
            hear("a", CANCELLED),
            ask("a", "tasks.grade", {}, NO_TASK),
            BYE,
        ],
    ),
    Row(
        "cancel during a grade",
        [
            ask("a", "tasks.start", {"id": "pondering", "args": {"seconds": 60}}, result({"prompt": "now"})),
            send("a", "tasks.grade", {}, id=2),
            ask("a", "tasks.cancel", {}, error(-32000, "tasks.cancel interrupted the task", id=2)),
            hear("a", CANCELLED),
            ask("a", "tasks.grade", {}, NO_TASK),
            BYE,
        ],
    ),
    Row(
        "bye during a start",
        [
            send("a", "tasks.start", {"id": "late", "args": {"seconds": 60}}, id=2),
            ask("a", "bye", {}, error(-32000, "bye interrupted the task", id=2)),
            hear("a", result({"goodbye": True}), ends=True),
        ],
    ),
    Row(
        "what is asked after a cancel waits for it",
        [
            send("a", "tasks.start", {"id": "late", "args": {"seconds": 60}}, id=2),
            raw(
                "a",
                line(frame("tasks.cancel", {}, 3))
                + line(frame("tasks.cancel", {}, 4))
                + line(frame("tasks.start", PEAR, 5)),
            ),
            hear(
                "a",
                error(-32000, "tasks.cancel interrupted the task", id=2),
                {**CANCELLED, "id": 3},
                {**CANCELLED, "id": 4},
                {**PROMPT, "id": 5},
            ),
            BYE,
        ],
    ),
    Row("bye", [BYE]),
    Row(
        "bye gives up the task",
        [
            ask("a", "hello", {}, KEPT),
            ask("a", "tasks.start", PEAR, PROMPT),
            BYE,
            ask(
                "b",
                "hello",
                {"session_id": "$session"},
                error(-32600, re.compile("unknown session: 'sess-")),
                again=True,
            ),
        ],
    ),
]

BUSY = [
    *(
        Row(
            f"{method} while a start runs",
            [
                send("a", "tasks.start", {"id": "late", "args": {"seconds": 60}}, id=2),
                ask("a", method, params, error(-32600, f"{method}: a task call is still running")),
                ask("a", "bye", {}, error(-32000, ANY, id=2)),
                hear("a", result({"goodbye": True}), ends=True),
            ],
        )
        for method, params in (
            ("tasks.start", PEAR),
            ("tasks.grade", {}),
            ("hello", {"session_id": "sess-x"}),
        )
    ),
    *(
        Row(
            f"{method} while a start runs, which disturbs nobody",
            [
                send("a", "tasks.start", {"id": "late", "args": {"seconds": 60}}, id=2),
                ask("a", method, {}, reply, theirs=error(-32600, f"{method}: a task call is still running")),
                ask("a", "bye", {}, error(-32000, ANY, id=2)),
                hear("a", result({"goodbye": True}), ends=True),
            ],
            differs=why,
        )
        for method, reply, why in (
            ("hello", HELLO, "a heartbeat asks whether anybody is there, above all while a call takes long"),
            ("tasks.list", result(ANY), "it runs none of the environment's code"),
            (
                "tasks.strat",
                error(-32601, "method not found: tasks.strat"),
                "a wrong name stays wrong when the call is over",
            ),
        )
    ),
]

PARKING = [
    Row(
        "who leaves during a start finds the task parked",
        [
            ask("a", "hello", {}, KEPT),
            send("a", "tasks.start", {"id": "late", "args": {"seconds": 0.2}}),
            hang_up("a"),
            ask("b", "hello", {"session_id": "$session"}, KEPT, again=True),
            ask("b", "tasks.grade", {}, result({"score": 1.0})),
        ],
    ),
    Row(
        "who leaves during a grade has ended it",
        [
            ask("a", "hello", {}, KEPT),
            ask("a", "tasks.start", {"id": "pondering", "args": {"seconds": 60}}, result({"prompt": "now"})),
            send("a", "tasks.grade", {}),
            hang_up("a"),
            ask(
                "b",
                "hello",
                {"session_id": "$session"},
                error(-32600, re.compile("unknown session: 'sess-")),
                again=True,
            ),
        ],
    ),
    Row(
        "whoever goes on with another session parks their own",
        [
            ask("a", "hello", {}, KEPT),
            ask("a", "tasks.start", PEAR, PROMPT),
            hang_up("a"),
            ask("b", "hello", {}, result({**GREETING, "session_id": "$other", "bindings": []})),
            ask("b", "tasks.start", PEAR, PROMPT),
            ask("b", "hello", {"session_id": "$session"}, KEPT, again=True),
            ask("b", "tasks.grade", {"answer": "1"}, result({"score": 1.0})),
            ask(
                "b",
                "hello",
                {"session_id": "$other"},
                result({**GREETING, "session_id": "$other", "bindings": []}),
            ),
            ask("b", "tasks.grade", {"answer": "1"}, result({"score": 1.0})),
        ],
    ),
]

SHAPES = [
    Row(
        "a request without an id is not answered",
        [
            send("a", "tasks.list", {}, id=None),
            send("a", "tasks.strat", {}, id=None),
            ask("a", "tasks.cancel", {}, CANCELLED),
            BYE,
        ],
    ),
    Row(
        "a start without an id is not answered, but made",
        [
            send("a", "tasks.start", {"id": "graded"}, id=None),
            ask("a", "tasks.grade", {}, result(ANY), again=True),
            BYE,
        ],
    ),
    Row(
        "an unknown method",
        [ask("a", "tasks.strat", {}, error(-32601, "method not found: tasks.strat")), BYE],
    ),
    Row(
        "no method at all",
        [raw("a", b'{"jsonrpc":"2.0","id":1}\n', error(-32601, "method not found: ")), BYE],
    ),
    Row(
        "params that are a list",
        [
            ask(
                "a",
                "tasks.start",
                ["count"],
                error(-32602, "tasks.start: 'params' must be an object"),
                theirs=error(-32000),
            ),
            BYE,
        ],
        differs="it is the request that is wrong, and no task's fault",
    ),
    Row(
        "two frames in one packet",
        [
            raw(
                "a",
                line(frame("tasks.start", PEAR, 1)) + line(frame("tasks.cancel", {}, 2)),
                ANY,
                {**CANCELLED, "id": 2},
            ),
            BYE,
        ],
    ),
    Row("a frame byte by byte", [Step("a", frame("tasks.start", PEAR), (PROMPT,), in_bytes=True), BYE]),
    Row(
        "a frame that ends like on Windows",
        [
            raw(
                "a",
                b'{"jsonrpc":"2.0","id":1,"method":"tasks.start","params":{"id":"count","args":{"word":"pear"}}}\r\n',
                PROMPT,
            ),
            BYE,
        ],
    ),
    Row(
        "letters of all kinds",
        [
            ask(
                "a",
                "tasks.start",
                {"id": "count", "args": {"word": "Ärger 😀\n"}},
                result({"prompt": "How many r in Ärger 😀\n?"}),
            ),
            BYE,
        ],
    ),
    Row(
        "an id that is a large number",
        [ask("a", "tasks.cancel", {}, {**CANCELLED, "id": 2**70}, id=2**70), BYE],
    ),
    Row(
        "JSON that is none",
        [raw("a", b"{oops}\n", error(-32700, re.compile("one JSON object"), id=None), theirs=(), ends=True)],
        differs="whoever sends what cannot be read is told so before the connection ends",
    ),
    Row(
        "text in no encoding",
        [
            raw(
                "a",
                b'{"id":1,"method":"\xff"}\n',
                error(-32700, re.compile("one JSON object"), id=None),
                theirs=(),
                ends=True,
            )
        ],
        differs="the same",
    ),
    *(
        Row(
            f"a frame that is {bad.decode()}",
            [
                raw(
                    "a",
                    bad + b"\n",
                    error(-32600, "a frame is one JSON object; batches are not taken", id=None),
                    theirs=(),
                    ends=True,
                )
            ],
            differs="the same",
        )
        for bad in (b"[]", b"3", b'"hello"', b"null", b'[{"jsonrpc":"2.0","id":1,"method":"hello"}]')
    ),
    Row(
        "JSON that is very deep",
        [
            raw(
                "a",
                b"[" * 100_000 + b"\n",
                error(-32700, re.compile("recursion"), id=None),
                theirs=(),
                ends=True,
            )
        ],
        differs="the same",
    ),
    Row(
        "NaN in a frame",
        [
            raw(
                "a",
                b'{"jsonrpc":"2.0","id":1,"method":"tasks.cancel","params":{"x":NaN}}\n',
                error(-32700, ANY, id=None),
                theirs=CANCELLED,
                ends=True,
                they_end=False,
            )
        ],
        differs="NaN is no JSON",
    ),
    Row(
        "blank lines between frames",
        [raw("a", b"\n\n \n" + line(frame("tasks.cancel", {})), CANCELLED, theirs=(), they_end=True), BYE],
        differs="they harm nobody; others drop the connection",
    ),
]

SIZES = [
    Row(
        "a frame of 15 MiB there, and a prompt of 15 MiB back",
        [
            ask(
                "a",
                "tasks.start",
                {"id": "large", "args": {"size": 15 * MIB}},
                result({"prompt": "x" * (15 * MIB)}),
            ),
            ask("a", "tasks.grade", {"answer": "y" * (15 * MIB)}, result({"score": 15.0 * MIB})),
            BYE,
        ],
    ),
    Row(
        "a prompt of 17 MiB",
        [
            ask(
                "a",
                "tasks.start",
                {"id": "large", "args": {"size": 17 * MIB}},
                result({"prompt": "x" * (17 * MIB)}),
                theirs=error(-32000, re.compile("limit")),
            ),
            BYE,
        ],
        differs="64 MiB fit into a frame here, 16 MiB there",
    ),
    Row(
        "an answer of 17 MiB",
        [
            ask(
                "a",
                "tasks.grade",
                {"answer": "y" * (17 * MIB)},
                NO_TASK,
                theirs=error(-32000, re.compile("limit"), id=None),
                they_end=True,
            ),
            BYE,
        ],
        differs="the same",
    ),
    Row(
        "a frame over the limit",
        [
            raw(
                "a",
                b'{"id":1,"method":"' + b"x" * (64 * MIB),
                error(-32000, re.compile("over the limit of 67,108,864"), id=None),
                theirs=error(-32000, re.compile("limit"), id=None),
                ends=True,
            )
        ],
        differs="another limit, said in other words",
    ),
    Row(
        "a prompt over the limit",
        [
            ask(
                "a",
                "tasks.start",
                {"id": "large", "args": {"size": 64 * MIB}},
                error(-32000, re.compile("limit")),
            ),
            ask("a", "tasks.grade", {}, NO_TASK),
            BYE,
        ],
    ),
]

TUNNELS = [
    Row(
        "tunnel.open to what is not there",
        [ask("a", "tunnel.open", {"capability": "nothing"}, error(-32000), ends=True)],
    ),
    Row(
        "tunnel.open to nowhere",
        [ask("a", "tunnel.open", {}, error(-32602, "tunnel.open: 'capability' must be a string"), ends=True)],
    ),
    Row(
        "tunnel.open to a number",
        [
            ask(
                "a",
                "tunnel.open",
                {"capability": 3},
                error(-32602, "tunnel.open: 'capability' must be a string"),
                ends=True,
            )
        ],
    ),
    Row(
        "tunnel.open later on",
        [
            ask("a", "hello", {}, HELLO),
            ask("a", "tunnel.open", {"capability": "tools"}, error(-32601, "method not found: tunnel.open")),
            BYE,
        ],
    ),
]

ROWS: list[Row] = [*HELLOS, *LISTS, *STARTS, *GRADES, *CANCELS, *BUSY, *PARKING, *SHAPES, *SIZES, *TUNNELS]
