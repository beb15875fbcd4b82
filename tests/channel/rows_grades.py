"""Rows of the table: tasks are graded."""

from __future__ import annotations

import re

from tests.channel.table import BYE, GREETING, KEPT, NO_TASK, PEAR, PROMPT, Row, ask, error, hang_up, result

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

ROWS = [*GRADES]
