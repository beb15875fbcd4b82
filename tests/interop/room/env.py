"""The deeds as tasks of an environment, and visits that see who was here before: `proctor serve env.py`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

from deeds import DEEDS, look, mark  # type: ignore[import-not-found]

from proctor import Environment

env = Environment("room")


def as_template(name: str) -> None:
    @env.template(id=name)
    async def deed() -> AsyncGenerator[Any, Any]:
        yield json.dumps(DEEDS[name]())
        yield 1.0


for name in DEEDS:
    as_template(name)


@env.template()
async def visit(number: int) -> AsyncGenerator[Any, Any]:
    was_there = mark()["was_there"]
    answer = yield json.dumps({"number": number, "host": look()["host"], "was_there": was_there})
    yield float(not was_there and json.loads(answer)["number"] == number)
