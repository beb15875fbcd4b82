"""Refusals of a request that every server of the API has, whatever its framework.

Each is a status, a code, a sentence and optional details. Knows nothing of HTTP frameworks.
"""

from __future__ import annotations

from typing import Any

from proctor.api.common import Problem
from proctor.errors import ProctorError


class ApiError(ProctorError):
    """A request that is refused."""

    status = 400
    code = "bad_request"

    def __init__(
        self, message: str, *, code: str | None = None, status: int | None = None, **details: Any
    ) -> None:
        super().__init__(message)
        self.status = status or type(self).status
        self.code = code or type(self).code
        self.details = details

    @property
    def problem(self) -> Problem:
        return Problem(self.code, str(self), self.details)


class NotFoundError(ApiError):
    """It does not exist, or not for this caller: the answer does not reveal which."""

    status, code = 404, "not_found"


class InvalidError(ApiError):
    status, code = 422, "invalid"
