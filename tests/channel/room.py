"""A small environment with a template for every way a task can go; served by anybody, unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proctor import Environment
else:
    try:
        from proctor import Environment
    except ImportError:
        from hud import Environment

Asked = AsyncGenerator[Any, Any]

env = Environment("room", version="1.2.3")


@env.template(description="Counts letters.")
async def count(word: str, letter: str = "r") -> Asked:
    answer = yield f"How many {letter} in {word}?"
    yield 1.0 if answer.strip() == str(word.count(letter)) else 0.0


@env.template()
async def talk() -> Asked:
    yield [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]
    yield 0.5


@env.template()
async def graded() -> Asked:
    yield "anything"
    yield {"score": 0.25, "content": "a remark", "info": {"seen": 1}}


@env.template()
async def bound() -> Asked:
    yield {"prompt": "look", "bindings": {"tools": {"only": ["a"]}}}
    yield 1.0


@env.template()
async def large(size: int) -> Asked:
    answer = yield "x" * size
    yield float(len(answer))


@env.template()
async def late(seconds: float) -> Asked:
    await asyncio.sleep(seconds)
    yield "at last"
    yield 1.0


@env.template()
async def pondering(seconds: float) -> Asked:
    yield "now"
    await asyncio.sleep(seconds)
    yield 1.0


@env.template()
async def endless() -> Asked:
    yield "now"
    yield float("nan")


@env.template()
async def wordy() -> Asked:
    yield "now"
    yield "very good"


@env.template()
async def once() -> Asked:
    yield "now"


@env.template()
async def never() -> Asked:
    if env.name == "":
        yield "never"


@env.template()
async def stumbling() -> Asked:
    if env.name:
        raise ValueError("no prompt today")
    yield "never"


@env.template()
async def failing() -> Asked:
    yield "now"
    raise ValueError("no grade today")


@env.template()
async def untidy() -> Asked:
    try:
        yield "now"
        yield 1.0
    finally:
        raise ValueError("left a mess")
