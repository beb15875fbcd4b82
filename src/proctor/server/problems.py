"""Errors of the API: every one is a status, a code, a sentence and optional details, and nothing else gets
out.

Knows nothing of the request.
"""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.status_codes import HTTP_500_INTERNAL_SERVER_ERROR
from sqlalchemy.exc import DataError

from proctor.api.common import PROBLEM_TYPE, Problem, complete_problem
from proctor.api.refusals import ApiError as ApiError
from proctor.api.refusals import InvalidError as InvalidError
from proctor.api.refusals import NotFoundError as NotFoundError
from proctor.errors import ConfigError
from proctor.server.db.availability import DatabaseAwayError
from proctor.support.logs import log

CODES = {
    400: "bad_request",
    401: "unauthenticated",
    402: "payment_required",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    429: "too_many_requests",
}


RETRY_SECONDS = 5
"""When to try again while the database is away."""
UNCACHED = {"cache-control": "no-store"}
"""Answers are for one caller, and must not be cached for another who sends the same request."""


class UnauthenticatedError(ApiError):
    status, code = 401, "unauthenticated"


class ForbiddenError(ApiError):
    status, code = 403, "forbidden"


class ConflictError(ApiError):
    status, code = 409, "conflict"


class TooLargeError(ApiError):
    status, code = 413, "too_large"


class QuotaError(ApiError):
    """A user has reached a limit on what they may store or own."""

    status, code = 409, "quota_exceeded"


class TooManyError(ApiError):
    """A user has reached a limit on concurrent work."""

    status, code = 429, "too_many_requests"


class PaymentError(ApiError):
    status, code = 402, "payment_required"


def problem_response(
    problem: Problem, status: int, headers: dict[str, str] | None = None
) -> Response[Problem]:
    return Response(
        complete_problem(problem, status),
        status_code=status,
        headers={**UNCACHED, **(headers or {})},
        media_type=PROBLEM_TYPE,
    )


def handle_api_error(_: Request[Any, Any, Any], error: ApiError) -> Response[Problem]:
    headers = {"www-authenticate": "Bearer"} if error.status == 401 else {}
    if "retry_after" in error.details:
        headers["retry-after"] = str(error.details["retry_after"])
    return problem_response(error.problem, error.status, headers)


def handle_config_error(_: Request[Any, Any, Any], error: ConfigError) -> Response[Problem]:
    """Settings that could not run as they are."""
    return problem_response(Problem("invalid", str(error)), 422)


def handle_http_exception(_: Request[Any, Any, Any], error: HTTPException) -> Response[Problem]:
    """The framework's errors, in our words."""
    code = CODES.get(error.status_code, "error")
    if isinstance(error, ValidationException):
        return problem_response(Problem("invalid", describe_validation_error(error)), 422)
    return problem_response(Problem(code, error.detail or code), error.status_code)


def describe_validation_error(error: ValidationException) -> str:
    extra = error.extra
    if isinstance(extra, list) and extra and isinstance(extra[0], dict):
        problems = [
            " ".join(str(each.get(part, "")) for part in ("key", "message")).strip() for each in extra
        ]
        return "; ".join(problems)
    cause = error.__cause__ or error.__context__
    return str(cause) if isinstance(cause, msgspec.ValidationError) else error.detail


def handle_unexpected_error(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    """A bug: the operator sees it in full, the caller does not."""
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    message = "The server failed to handle this request; its log says why."
    return problem_response(Problem("internal", message), HTTP_500_INTERNAL_SERVER_ERROR)


def handle_unstorable_value(_: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    """A number that no column holds, a text with NUL characters, lists nested without end."""
    log.debug("a request held a value that cannot be stored: %s", error)
    return problem_response(Problem("invalid", "The request holds a value that cannot be stored."), 422)


def handle_database_away(_: Request[Any, Any, Any], error: DatabaseAwayError) -> Response[Problem]:
    return problem_response(Problem("database_away", str(error)), 503, {"retry-after": str(RETRY_SECONDS)})


HANDLERS: dict[Any, Any] = {
    ApiError: handle_api_error,
    ConfigError: handle_config_error,
    DatabaseAwayError: handle_database_away,
    HTTPException: handle_http_exception,
    DataError: handle_unstorable_value,
    OverflowError: handle_unstorable_value,
    RecursionError: handle_unstorable_value,
    Exception: handle_unexpected_error,
}
