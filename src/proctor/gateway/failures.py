"""What a program is told when the model cannot answer.

The statuses are those that clients know what to do with: they come again after 429 and 5xx, and after
nothing else. Nothing of our own key or of its provider's opinion of it is repeated.
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
from proctor.gateway.wire import GatewayRefusedError, Refusal

NO_KEY = Refusal(
    401, "key", "This key opens no door; a key is good for one rollout, and only while that is played."
)
CLOSED = Refusal(401, "key", "The rollout has ended, and its door is closed.")
TOO_LARGE = Refusal(413, "request_too_large", "The request is larger than 64 MiB.")
NOT_FOUND = Refusal(
    404,
    "not_found",
    "There is nothing here; POST to /v1/chat/completions, /v1/responses or /v1/messages, or GET /v1/models.",
)
BROKEN = Refusal(500, "internal_error", "The gateway broke over this request; its log says how.")

ERROR_STATUSES = {
    OverloadedError: (503, "overloaded"),
    UnreachableError: (502, "provider_unreachable"),
    MalformedReplyError: (502, "provider_unreadable"),
    ModelTimeoutError: (504, "timeout"),
}
KEPT_STATUSES = (400, 404, 413, 422)


def no_steps_left(most: int) -> GatewayRefusedError:
    message = f"No requests are left: this rollout may make {most}."
    return GatewayRefusedError(Refusal(400, "max_steps", message))


def refusal_of(error: ModelError) -> Refusal:
    match error:
        case AuthError():
            return Refusal(500, "provider_key", "The gateway's provider refused the gateway's own key.")
        case ContextTooLongError():
            return Refusal(400, "context_length_exceeded", str(error))
        case RateLimitError():
            return Refusal(429, "rate_limit_exceeded", str(error), error.retry_after_seconds)
        case RequestRefusedError():
            status = error.status if error.status in KEPT_STATUSES else 400
            return Refusal(status, "invalid_request", str(error))
    status, code = ERROR_STATUSES.get(type(error), (500, "model_error"))
    return Refusal(status, code, str(error))
