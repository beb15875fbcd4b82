"""The list of models with prices. The gateway itself, under `/v1`, is not a route: see `asgi`."""

from __future__ import annotations

from litestar import Router, get
from litestar.params import FromQuery
from msgspec.structs import replace
from sqlalchemy import Connection

from proctor.api.common import Page
from proctor.api.ledger import LastRun, ModelInfo
from proctor.server.gateway.models import describe_model
from proctor.server.hub.access import need_environment
from proctor.server.requests import CallerDependency, PlatformDependency
from proctor.server.runs.last_runs import list_last_runs


@get("/models", summary="List the models and their prices; with an environment, what each did there last")
async def list_models(
    caller: CallerDependency, platform: PlatformDependency, environment: FromQuery[str | None] = None
) -> Page[ModelInfo]:
    caller.need("inference")
    listed = platform.models.list_models()
    if environment is None:
        return Page(listed)

    def work(connection: Connection) -> dict[str, LastRun]:
        return list_last_runs(connection, caller, need_environment(connection, caller, environment).id)

    last = await platform.database.read(work)
    return Page([replace(model, last=last.get(model.id)) for model in listed])


@get("/models/resolve", summary="The model that a name means here; without a name, the default model")
async def resolve_model(
    caller: CallerDependency, platform: PlatformDependency, name: FromQuery[str | None] = None
) -> ModelInfo:
    caller.need("inference")
    return describe_model(platform.models.resolve(name))


router = Router("", route_handlers=[list_models, resolve_model], tags=["inference"])
