"""The whole conformance table."""

from __future__ import annotations

from tests.channel import rows_cancels, rows_grades, rows_sessions, rows_shapes, rows_tasks
from tests.channel.table import Row

ROWS: list[Row] = [
    *rows_sessions.ROWS,
    *rows_tasks.ROWS,
    *rows_grades.ROWS,
    *rows_cancels.ROWS,
    *rows_shapes.ROWS,
]
