"""The template that is measured in this process and in one of its own: one question, one answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from proctor import Environment

env = Environment("sums", reusable=True)


@env.template()
async def sum_of(number: int) -> AsyncGenerator[Any, str]:
    answer = yield f"What is 2+2? (#{number})"
    yield float("4" in answer)


tasks = [sum_of(number=number) for number in range(2_500)]
