"""Send files over HTTP: through this server, or by a redirect to the object store.

Only requests that may read a file come here. A redirect is signed for a few minutes, and is given to clients
that ask for one: they follow it without their token, and come back if the store is out of their reach.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from litestar.response import Stream

from proctor.api.common import REDIRECT_HEADER
from proctor.server.openapi.described import BINARY
from proctor.server.platform import Platform
from proctor.server.problems import UNCACHED, NotFoundError
from proctor.server.requests import HttpRequest

SIGNED_SECONDS = 300.0
LARGE_BYTES = 4 * 2**20
"""Smaller files are sent at once: a redirect would take as long."""

Wrap = Callable[[AsyncGenerator[bytes, None]], AsyncGenerator[bytes, None]]


async def send_file(
    platform: Platform,
    request: HttpRequest,
    sha256: str,
    filename: str,
    *,
    media_type: str = BINARY,
    follows_redirects: bool = False,
    wrap: Wrap = lambda blocks: blocks,
) -> Stream:
    """A file as a download; `wrap` counts its blocks."""
    try:
        if follows_redirects or request.headers.get(REDIRECT_HEADER):
            row = await platform.blobs.find(sha256)
            if row.size >= LARGE_BYTES and (url := await platform.blobs.sign(sha256, SIGNED_SECONDS)):
                return Stream(iter(()), status_code=307, headers={**UNCACHED, "location": url})
        opened = await platform.blobs.open(sha256)
    except FileNotFoundError as error:
        raise NotFoundError("This version was just deleted.") from error
    return Stream(
        wrap(opened.blocks),
        media_type=media_type,
        headers={
            "content-length": str(opened.size),
            "etag": f'"{sha256}"',
            "content-disposition": f'attachment; filename="{filename}"',
        },
    )
