"""Repair a program in a sandboxed folder: every rollout gets a copy of its own, and hidden tests decide.

proctor eval run examples/repairs.py -m local
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from proctor import Environment

env = Environment("repairs", version="1.0.0")
work = env.workspace("repairs_starter", seconds=30)

TESTS = {
    "total": "from prices import total; assert total([5, 10, 20]) == 35; assert total([]) == 0",
    "reduced": "from prices import reduced; assert reduced(200, 10) == 180; assert reduced(99, 0) == 99",
}


@env.template()
async def repair(function: str) -> AsyncGenerator[Any, str]:
    """One function is wrong. The tests come into the folder when the agent has left it."""
    yield f"`{function}` in prices.py does not do what its docstring says. Repair it."
    await work.write("hidden_test.py", TESTS[function])
    yield await work.check("python3 hidden_test.py", name=function)


tasks = [repair(function=function) for function in TESTS]
