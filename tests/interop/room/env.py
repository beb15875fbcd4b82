"""The deeds as tasks of an environment: `proctor serve env.py`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

from deeds import DEEDS  # type: ignore[import-not-found]

from proctor import Environment

env = Environment("room")


def as_template(name: str) -> None:
    @env.template(id=name)
    async def deed() -> AsyncGenerator[Any, Any]:
        yield json.dumps(DEEDS[name]())
        yield 1.0


for name in DEEDS:
    as_template(name)
