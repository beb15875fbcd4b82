"""The list of models with prices. The gateway itself, under `/v1`, is not a route: see `asgi`."""

from __future__ import annotations

from litestar import Router, get
from litestar.params import FromQuery

from proctor.api.common import Page
from proctor.api.ledger import ModelInfo
from proctor.server.gateway.models import describe_model
from proctor.server.requests import CallerDependency, PlatformDependency


@get("/models", summary="List the models and their prices")
async def list_models(caller: CallerDependency, platform: PlatformDependency) -> Page[ModelInfo]:
    caller.need("inference")
    return Page(platform.models.listed())


@get("/models/resolve", summary="The model that a name means here; without a name, the default model")
async def resolve_model(
    caller: CallerDependency, platform: PlatformDependency, name: FromQuery[str | None] = None
) -> ModelInfo:
    caller.need("inference")
    return describe_model(platform.models.resolve(name))


router = Router("", route_handlers=[list_models, resolve_model], tags=["inference"])
