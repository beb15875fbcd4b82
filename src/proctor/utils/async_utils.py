"""Call a function that may be a coroutine function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


async def maybe_await(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    result = function(*args, **kwargs)
    return await result if inspect.isawaitable(result) else result
