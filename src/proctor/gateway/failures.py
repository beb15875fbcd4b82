"""The refusals that a program receives when the model cannot answer.

Their statuses are those that clients handle: they retry after 429 and 5xx, and after nothing else. No refusal
repeats our own key, or the provider's message about it.
"""

from __future__ import annotations

from proctor.errors import (
    AuthError,
    ContextTooLongError,
    MalformedReplyError,
    ModelError,
    ModelTimeoutError,
    OverloadedError,
    RateLimitError,
    RequestRefusedError,
    UnreachableError,
)
from proctor.wires.errors import GatewayRefusedError, Refusal

NO_KEY = Refusal(
    401, "key", "The API key is not valid; a key is valid for one rollout, and only while it is played."
)
CLOSED = Refusal(401, "key", "The rollout has ended, and its API key is no longer valid.")
TOO_LARGE = Refusal(413, "request_too_large", "The request is larger than 64 MiB.")
NOT_FOUND = Refusal(
    404,
    "not_found",
    "There is no such route; POST to /v1/chat/completions, /v1/responses or /v1/messages, or GET /v1/models.",
)
BROKEN = Refusal(500, "internal_error", "The gateway failed on this request; see its log.")

ERROR_STATUSES = {
    OverloadedError: (503, "overloaded"),
    UnreachableError: (502, "provider_unreachable"),
    MalformedReplyError: (502, "provider_unreadable"),
    ModelTimeoutError: (504, "timeout"),
}
KEPT_STATUSES = (400, 404, 413, 422)


def no_steps_left(most: int) -> GatewayRefusedError:
    message = f"No requests are left: this rollout may send {most}."
    return GatewayRefusedError(Refusal(400, "max_steps", message))


def refusal_of(error: ModelError) -> Refusal:
    match error:
        case AuthError():
            return Refusal(403, "provider_key", "The provider refused the gateway's own key.")
        case ContextTooLongError():
            return Refusal(400, "context_length_exceeded", str(error))
        case RateLimitError():
            return Refusal(429, "rate_limit_exceeded", str(error), error.retry_after_seconds)
        case RequestRefusedError():
            status = error.status if error.status in KEPT_STATUSES else 400
            return Refusal(status, "invalid_request", str(error))
    status, code = ERROR_STATUSES.get(type(error), (500, "model_error"))
    return Refusal(status, code, str(error))
