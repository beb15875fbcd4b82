"""Rows of the table: templates are listed, tasks are started."""

from __future__ import annotations

from tests.channel.table import ANY, BYE, NO_TASK, PEAR, PROMPT, Row, ask, error, result

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

ROWS = [*LISTS, *STARTS]
