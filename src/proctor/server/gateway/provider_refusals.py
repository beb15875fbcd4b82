"""What a client reads where a provider refuses the key or demands payment, on every wire the same.

Neither is the client's to settle unless the endpoint is its run's own. Knows nothing of HTTP.
"""

from __future__ import annotations

from proctor.errors import AuthError, ModelError
from proctor.server.gateway.requests import GatewayRequest
from proctor.wires.errors import GatewayRefusedError, Refusal

PROVIDER_KEY = Refusal(
    403,
    "provider_key",
    "The provider refused the server's own key for this model; tell the server's operator.",
)
OWN_KEY = Refusal(
    403, "provider_key", "The run's own endpoint refused its key; check the secret that api_key_var names."
)
PAYMENT_REQUIRED = 402
"""Only this server sends it, about its own accounts: a run that receives it stops calling."""
PROVIDER_PAYMENT = Refusal(
    403,
    "provider_payment",
    "The provider of this model demands payment from the server; tell the server's operator.",
)
OWN_PAYMENT = Refusal(
    403,
    "provider_payment",
    "The run's own endpoint demands payment; check the account that its key belongs to.",
)


def refusal_of_provider(request: GatewayRequest, error: ModelError) -> GatewayRefusedError | None:
    """What a client reads instead of the provider's error; None for errors that it may read."""
    if isinstance(error, AuthError):
        return GatewayRefusedError(key_refusal(request))
    if error.status == PAYMENT_REQUIRED:
        return GatewayRefusedError(payment_refusal(request))
    return None


def key_refusal(request: GatewayRequest) -> Refusal:
    return OWN_KEY if request.is_own else PROVIDER_KEY


def payment_refusal(request: GatewayRequest) -> Refusal:
    return OWN_PAYMENT if request.is_own else PROVIDER_PAYMENT
