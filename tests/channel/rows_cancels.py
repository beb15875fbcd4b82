"""Rows of the table: what is given up, and what cannot be done meanwhile."""

from __future__ import annotations

import re

from tests.channel.table import (
    ANY,
    BYE,
    CANCELLED,
    HELLO,
    KEPT,
    NO_TASK,
    PEAR,
    PROMPT,
    Row,
    ask,
    error,
    frame,
    hear,
    line,
    raw,
    result,
    send,
)

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

ROWS = [*CANCELS, *BUSY]
