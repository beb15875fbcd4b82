"""The API's description over HTTP: for programs, and as a page. Both are built when first requested."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from litestar import Litestar, Request, Router, get
from litestar.response import Response

from proctor.server.openapi.codes import ERROR_CODES
from proctor.server.openapi.document import build_document
from proctor.server.openapi.page import POLICY, render_page

OPENAPI_TYPE = "application/vnd.oai.openapi+json"
CACHED = {"cache-control": "private, max-age=60"}


@get("/schema/openapi.json", summary="The API as an OpenAPI document")
async def read_document(request: Request[Any, Any, Any]) -> Response[bytes]:
    return Response(build_once(request.app, encode_document), media_type=OPENAPI_TYPE, headers=CACHED)


@get("/schema", summary="The API as a page")
async def read_page(request: Request[Any, Any, Any]) -> Response[bytes]:
    headers = {**CACHED, "content-security-policy": POLICY}
    return Response(build_once(request.app, encode_page), media_type="text/html", headers=headers)


def build_once(app: Litestar, build: Callable[[Litestar], bytes]) -> bytes:
    if build.__name__ not in app.state:
        app.state[build.__name__] = build(app)
    built: bytes = app.state[build.__name__]
    return built


def encode_document(app: Litestar) -> bytes:
    return msgspec.json.encode(build_document(app), enc_hook=msgspec.to_builtins)


def encode_page(app: Litestar) -> bytes:
    document = msgspec.json.decode(build_once(app, encode_document))
    return render_page(document, ERROR_CODES).encode()


router = Router("", route_handlers=[read_document, read_page], include_in_schema=False)
