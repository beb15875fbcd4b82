"""The HTTP side of a server: every route, its dependencies, and how errors are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from litestar import Litestar, Response, Router, get
from litestar.datastructures import State
from litestar.di import Provide

from proctor import __version__
from proctor.api.common import BASE, DATABASE_AWAY
from proctor.server.admin.routes import router as admin
from proctor.server.audit.changes import find_audit
from proctor.server.audit.routes import router as audit
from proctor.server.datasets.routes import create_datasets_router
from proctor.server.datasets.upload_routes import create_uploads_router
from proctor.server.example.routes import router as example
from proctor.server.gateway.routes import router as inference
from proctor.server.hub.index import index
from proctor.server.hub.routes import create_hub_router
from proctor.server.ledger.routes import router as ledger
from proctor.server.openapi.described import OPEN
from proctor.server.openapi.routes import router as openapi
from proctor.server.people.routes import router as people
from proctor.server.people.session_routes import router as browser_login
from proctor.server.people.team_routes import router as teams
from proctor.server.platform import Platform
from proctor.server.problems import HANDLERS, RETRY_SECONDS, UNCACHED
from proctor.server.reading.routes import router as reading
from proctor.server.request_fields import check_fields
from proctor.server.requests import PlatformDependency, check_head, find_caller, need_authentication
from proctor.server.runs.comment_routes import router as comments
from proctor.server.runs.label_routes import router as labels
from proctor.server.runs.routes import router as runs
from proctor.server.runs.runner_routes import playing
from proctor.server.sandboxes.routes import router as sandboxes
from proctor.server.sandboxes.session_routes import router as sessions
from proctor.server.secrets.routes import router as secrets
from proctor.server.settings import Settings
from proctor.server.sources.routes import router as sources
from proctor.server.sources.submission_routes import router as submissions

DRAINING = "The server is about to end; send requests to another."


@get("/health", summary="Whether the server runs; checks nothing else", opt=OPEN)
async def health(platform: PlatformDependency) -> dict[str, str]:
    return {"status": "ok", "version": __version__, "url": platform.settings.url}


@get(
    "/ready",
    summary="Whether to send requests here; 503 while its database is away or it is ending",
    opt=OPEN,
)
async def ready(platform: PlatformDependency) -> Response[dict[str, str]]:
    about = {"version": __version__, "url": platform.settings.url}
    reason = ""
    if platform.is_draining:
        reason = DRAINING
    elif await platform.database.availability.look() is not None:
        reason = DATABASE_AWAY  # why is in the log: anyone may ask here
    if not reason:
        return Response({"status": "ok", **about})
    away = {"status": "unavailable", "reason": reason}
    return Response({**away, **about}, status_code=503, headers={"retry-after": str(RETRY_SECONDS)})


def create_app(platform: Platform) -> Litestar:
    app = build_app(platform.settings)
    serve_platform(app, platform)
    return app


def serve_platform(app: Litestar, platform: Platform) -> None:
    """Make an app answer for a platform, from the app's next start on."""
    app.state["platform"] = platform


@asynccontextmanager
async def run_platform(app: Litestar) -> AsyncIterator[None]:
    platform: Platform = app.state["platform"]
    await platform.start()
    try:
        yield
    finally:
        await platform.close()


async def find_platform(state: State) -> Platform:
    platform: Platform = state["platform"]
    return platform


def build_app(settings: Settings) -> Litestar:
    """Every route. Of the settings it depends only on how large requests may be."""
    return Litestar(
        route_handlers=[
            Router(
                BASE,
                route_handlers=[
                    health,
                    ready,
                    people,
                    teams,
                    browser_login,
                    create_hub_router(settings),
                    create_datasets_router(settings),
                    create_uploads_router(settings),
                    runs,
                    labels,
                    comments,
                    reading,
                    playing(settings),
                    secrets,
                    sources,
                    submissions,
                    example,
                    sandboxes,
                    sessions,
                    inference,
                    ledger,
                    audit,
                    admin,
                    openapi,
                ],
                guards=[check_head, need_authentication, check_fields],
                response_headers=UNCACHED,
            ),
            index,
        ],
        dependencies={
            "platform": Provide(find_platform),
            "caller": Provide(find_caller),
            "audit": Provide(find_audit),
        },
        exception_handlers=HANDLERS,
        lifespan=[run_platform],
        logging_config=None,
        request_max_body_size=settings.largest_request,
        openapi_config=None,  # server/openapi/ describes the API
    )
