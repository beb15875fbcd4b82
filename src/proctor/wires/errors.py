"""How an exchange over a wire fails: a request that is refused, a reply that holds no answer.

Knows nothing of HTTP clients, endpoints or rollouts.
"""

from __future__ import annotations

import msgspec

from proctor.errors import MalformedReplyError, ModelError
from proctor.wires.codec import NOTHING, UNREADABLE


class Refusal(msgspec.Struct, frozen=True):
    """Why a gateway does not answer a request."""

    status: int
    code: str
    message: str
    retry_after_seconds: float | None = None


class GatewayRefusedError(Exception):
    """A gateway refuses a request."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class ErrorInReplyError(Exception):
    """A response with a status of success whose body reports an error, as some gateways send it."""

    def __init__(self, status: int, content: bytes) -> None:
        super().__init__(f"the body reports an error of status {status}")
        self.status = status
        """What the status should have been."""
        self.content = content


class UnusableReplyError(Exception):
    """A reply that can be decoded but holds no answer. The message is a predicate: "answered without …"."""

    def __init__(self, message: str, kind: type[ModelError] = MalformedReplyError) -> None:
        super().__init__(message)
        self.kind = kind
        """The error to raise where the endpoint is known."""


class ErrorBody(msgspec.Struct):
    """The shape of an error that all wires share; its content is never decoded, for it may be of any size."""

    error: msgspec.Raw = NOTHING


_decode_error = msgspec.json.Decoder(ErrorBody).decode


def has_error(content: bytes) -> bool:
    """Whether a body is an error in the shape that all wires share."""
    try:
        return bytes(_decode_error(content).error).startswith(b"{")
    except UNREADABLE:
        return False


def malformed_error(message: str) -> GatewayRefusedError:
    return GatewayRefusedError(Refusal(400, "invalid_request", message))
