"""Repair a program in a sandboxed folder: every rollout gets a copy of its own, and hidden tests decide.

proctor eval run examples/repairs.py -m local -t 64
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from proctor import Environment

env = Environment("repairs", version="1.0.0")
work = env.workspace("repairs_starter", seconds=30)

CALLS = {
    "total": ("total([5, 10, 20]), total([])", "35 0"),
    "reduced": ("reduced(200, 10), reduced(99, 0)", "180 99"),
}
"""What is called, and what that must print. The agent's code could end a test with any exit code; to print
the right numbers, it must compute them."""


@env.template()
async def repair(function: str) -> AsyncGenerator[Any, str]:
    """One function is wrong. The tests come when the agent has left, from a folder that it cannot write."""
    yield f"`{function}` in prices.py does not do what its docstring says. Repair it."
    calls, expected = CALLS[function]
    tests = {"calls.py": f"from prices import {function}; print({calls})"}
    yield await work.check("python3 calls.py", tests=tests, expected=expected, name=function)


tasks = [repair(function=function) for function in CALLS]
