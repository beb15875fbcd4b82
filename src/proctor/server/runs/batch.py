"""Several runs that are started together, or not at all: every refusal is collected, then raised as one.

Knows nothing of HTTP or of how a run is checked and started.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec

from proctor.api.runs import NewRun, RunInfo
from proctor.errors import ConfigError
from proctor.server.problems import ApiError, InvalidError, PaymentError, QuotaError
from proctor.server.runs.refusals import as_api_error

T = TypeVar("T")


class RunRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why one run of a batch cannot be started."""

    index: int
    """Its position in the request, from 0."""
    code: str
    message: str
    details: dict[str, Any] = {}


class RunBatch:
    """Checks and starts runs in order, and remembers what was refused."""

    def __init__(self, runs: Sequence[NewRun]) -> None:
        self.runs = runs
        self.refusals: dict[int, ApiError] = {}

    async def check(self, index: int, checking: Awaitable[T]) -> T | None:
        try:
            return await checking
        except (ApiError, ConfigError) as error:
            self.refusals[index] = as_api_error(error)
            return None

    def start_all(self, checked: Sequence[T | None], start: Callable[[T], RunInfo]) -> list[RunInfo]:
        """Start the runs whose checks succeeded; raises if any run was refused, then or now.

        A full queue or an empty account refuses all later runs for the same reason, which is given once.
        """
        refusals, started = dict(self.refusals), []
        for index, result in enumerate(checked):
            if result is None:
                continue
            try:
                started.append(start(result))
            except (ApiError, ConfigError) as error:
                refusals[index] = as_api_error(error)
                if isinstance(error, (QuotaError, PaymentError)):
                    break
        if refusals:
            raise self.combine(refusals)
        return started

    def combine(self, refusals: dict[int, ApiError]) -> ApiError:
        """One error: with the code of all refusals, if they share one."""
        ordered = sorted(refusals.items())
        sentences = [f"{self.describe(index)}: {error}" for index, error in ordered]
        kinds = {(error.code, error.status) for _, error in ordered}
        code, status = kinds.pop() if len(kinds) == 1 else (InvalidError.code, InvalidError.status)
        details = [
            RunRefusal(index=index, code=error.code, message=str(error), details=error.details)
            for index, error in ordered
        ]
        message = f"No run was started. {' '.join(sentences)}"
        return ApiError(message, code=code, status=status, runs=msgspec.to_builtins(details))

    def describe(self, index: int) -> str:
        new = self.runs[index]
        model = f" with {new.model}" if new.model else ""
        return f"Run {index + 1} of {len(self.runs)} ({new.environment}{model})"
