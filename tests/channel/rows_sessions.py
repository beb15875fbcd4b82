"""Rows of the table: who is there, sessions that are parked and gone on with, tunnels."""

from __future__ import annotations

import re

from tests.channel.table import (
    BYE,
    GREETING,
    HELLO,
    KEPT,
    PEAR,
    PROMPT,
    Row,
    Step,
    ask,
    error,
    frame,
    hang_up,
    result,
    send,
)

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

ROWS = [*HELLOS, *PARKING, *TUNNELS]
