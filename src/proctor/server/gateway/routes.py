"""The inference gateway over HTTP: `/v1`, as providers have it, and the list of models with prices."""

from __future__ import annotations

from typing import cast

from litestar import Router, get
from litestar.handlers import asgi
from litestar.params import FromQuery
from litestar.types import HTTPScope, Receive, Scope, Send

from proctor.api.common import Page
from proctor.api.ledger import ModelInfo
from proctor.server.gateway.gateway import ServerGateway
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


@asgi("/v1", is_mount=True, copy_scope=False)
async def infer(scope: Scope, receive: Receive, send: Send) -> None:
    gateway: ServerGateway = scope["litestar_app"].state["gateway"]
    await gateway(cast(HTTPScope, scope), receive, send)


router = Router("", route_handlers=[list_models, resolve_model], tags=["inference"])
