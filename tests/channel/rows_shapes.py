"""Rows of the table: frames good and bad, small and large."""

from __future__ import annotations

import re

from tests.channel.table import (
    ANY,
    BYE,
    CANCELLED,
    MIB,
    NO_TASK,
    PEAR,
    PROMPT,
    Row,
    Step,
    ask,
    error,
    frame,
    line,
    raw,
    result,
    send,
)

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
                    error(-32600, "a frame is one JSON object; batches are not supported", id=None),
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

ROWS = [*SHAPES, *SIZES]
