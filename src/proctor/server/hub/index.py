"""The hub as an index for pip and uv: PEP 503 and 691, with sizes and times (700) and metadata (658, 714).

Every namespace is an index of its own, `/simple/{owner}/`, so that no package can stand in for another of the
same name. A token is the password of basic credentials. Packages that the caller may not read do not appear.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
from litestar import Request, Response, Router, get
from litestar.params import FromPath
from litestar.response import Stream
from packaging.utils import canonicalize_name
from sqlalchemy import Connection, Row, select

from proctor.api.common import Problem
from proctor.server.db.tables import environments, versions
from proctor.server.hub.access import check_scope, need_environment, readable_condition
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import ApiError, NotFoundError, UnauthenticatedError, problem_response
from proctor.server.requests import CallerDependency, HttpRequest, PlatformDependency
from proctor.server.storage.downloads import send_file

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
HTML_TYPE = "application/vnd.pypi.simple.v1+html"
API_VERSION = "1.1"
METADATA = ".metadata"
MOST_HASHES = 100_000
"""That are remembered."""


@get("/", summary="Everything you may read, as owner/name")
async def list_all(
    request: HttpRequest, caller: CallerDependency, platform: PlatformDependency
) -> Response[bytes]:
    rows = await platform.database.read(find_projects, caller, None)
    return render_projects(
        request, platform, [(f"{row.owner}/{row.name}", row.owner, row.name) for row in rows]
    )


@get("/{owner:str}", summary="The packages of one namespace")
async def list_projects(
    request: HttpRequest, owner: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Response[bytes]:
    rows = await platform.database.read(find_projects, caller, owner)
    if not rows:
        raise not_readable_error(caller, owner)
    return render_projects(request, platform, [(row.name, row.owner, row.name) for row in rows])


@get("/{owner:str}/{name:str}", summary="The wheels of one package")
async def list_files(
    request: HttpRequest,
    owner: FromPath[str],
    name: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> Response[bytes]:
    rows, hashes = await platform.database.read(files_and_hashes, caller, owner, name)
    folder = f"{index_prefix(platform)}/{quote(owner)}/{canonicalize_name(name)}"
    described = [describe_file(row, folder, hashes[row.id]) for row in rows]
    if prefers_json(request):
        document = {
            "meta": {"api-version": API_VERSION},
            "name": canonicalize_name(name),
            "versions": list(dict.fromkeys(row.version for row in rows)),
            "files": described,
        }
        return Response(msgspec.json.encode(document), media_type=JSON_TYPE)
    return render_page([render_file_link(each) for each in described])


@get("/{owner:str}/{name:str}/{file:str}", summary="A wheel, or its metadata")
async def read_file(
    request: HttpRequest,
    owner: FromPath[str],
    name: FromPath[str],
    file: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> Stream | Response[bytes]:
    rows = await platform.database.read(find_files, caller, owner, name)
    for row in rows:
        if file == row.wheel_name:
            return await send_file(platform, request, row.wheel_sha256, file, follows_redirects=True)
        if file == row.wheel_name + METADATA:
            text = await platform.database.read(metadata_of, row.id)
            return Response(text.encode(), media_type="text/plain; charset=utf-8")
    raise not_readable_error(caller, f"{owner}/{name}/{file}")


def find_projects(connection: Connection, caller: Caller, owner: str | None) -> list[Row[Any]]:
    check_scope(caller)
    query = select(environments.c.owner, environments.c.name).where(readable_condition(connection, caller))
    if owner is not None:
        query = query.where(environments.c.owner == owner)
    return list(connection.execute(query.order_by(environments.c.owner, environments.c.name)))


def find_files(connection: Connection, caller: Caller, owner: str, name: str) -> list[Row[Any]]:
    try:
        row = need_environment(connection, caller, f"{owner}/{canonicalize_name(name)}")
    except NotFoundError as error:
        raise not_readable_error(caller, f"{owner}/{name}") from error
    query = select(
        versions.c.id,
        versions.c.version,
        versions.c.wheel_name,
        versions.c.wheel_sha256,
        versions.c.wheel_size,
        versions.c.requires_python,
        versions.c.created_at,
    ).where(versions.c.environment_id == row.id)
    return list(connection.execute(query.order_by(versions.c.number)))


def files_and_hashes(
    connection: Connection, caller: Caller, owner: str, name: str
) -> tuple[list[Row[Any]], dict[str, str]]:
    """The wheels of a package, and the hash of each one's metadata by the id of its version."""
    rows = find_files(connection, caller, owner, name)
    return rows, {row.id: metadata_hash(connection, row.id) for row in rows}


_metadata_hashes: dict[str, str] = {}
"""By version, which never changes: all metadata of a package may be far more than what the page shows."""


def metadata_hash(connection: Connection, version_id: str) -> str:
    known = _metadata_hashes.get(version_id)
    if known is None:
        if len(_metadata_hashes) >= MOST_HASHES:
            _metadata_hashes.clear()
        known = hashlib.sha256(metadata_of(connection, version_id).encode()).hexdigest()
        _metadata_hashes[version_id] = known
    return known


def metadata_of(connection: Connection, version_id: str) -> str:
    query = select(versions.c.metadata_text).where(versions.c.id == version_id)
    return str(connection.execute(query).scalar_one_or_none() or "")


def not_readable_error(caller: Caller, what: str) -> ApiError:
    """What does not exist for the caller; without a token, credentials are requested whether it exists or
    not."""
    if caller.is_anonymous:
        return UnauthenticatedError(f"{what} is not public; send a token as the password.")
    return NotFoundError(f"There is no {what} that you may read.")


# Rendering


def describe_file(row: Row[Any], folder: str, metadata_sha256: str) -> dict[str, Any]:
    metadata = {"sha256": metadata_sha256}
    moment = datetime.fromtimestamp(row.created_at, UTC).isoformat(timespec="microseconds")
    link: dict[str, Any] = {
        "filename": row.wheel_name,
        "url": f"{folder}/{quote(row.wheel_name)}",
        "hashes": {"sha256": row.wheel_sha256},
        "size": row.wheel_size,
        "upload-time": moment.replace("+00:00", "Z"),
        "core-metadata": metadata,
        "dist-info-metadata": metadata,
    }
    return link | ({"requires-python": row.requires_python} if row.requires_python else {})


def render_file_link(link: dict[str, Any]) -> str:
    metadata = f"sha256={link['core-metadata']['sha256']}"
    attributes = {
        "href": f"{link['url']}#sha256={link['hashes']['sha256']}",
        "data-core-metadata": metadata,
        "data-dist-info-metadata": metadata,
        **({"data-requires-python": link["requires-python"]} if "requires-python" in link else {}),
    }
    words = " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())
    return f"<a {words}>{escape(link['filename'])}</a>"


def render_projects(
    request: HttpRequest, platform: Platform, found: Sequence[tuple[str, str, str]]
) -> Response[bytes]:
    if prefers_json(request):
        document = {
            "meta": {"api-version": API_VERSION},
            "projects": [{"name": name} for name, _, _ in found],
        }
        return Response(msgspec.json.encode(document), media_type=JSON_TYPE)
    return render_page(
        [
            f'<a href="{index_prefix(platform)}/{escape(owner)}/{escape(package)}/">{escape(name)}</a>'
            for name, owner, package in found
        ]
    )


def render_page(links: Sequence[str]) -> Response[bytes]:
    head = f'<meta name="pypi:repository-version" content="{API_VERSION}"><title>Packages</title>'
    body = "\n".join(f"{link}<br>" for link in links)
    text = f"<!DOCTYPE html>\n<html><head>{head}</head><body>\n{body}\n</body></html>\n"
    return Response(text.encode(), media_type="text/html; charset=utf-8")


def index_prefix(platform: Platform) -> str:
    """The index's address, as clients see it."""
    return urlsplit(platform.settings.url).path + "/simple"


def prefers_json(request: HttpRequest) -> bool:
    """By what the client accepts; JSON wins unless HTML is preferred."""
    wanted = parse_accept(request.headers.get("accept", ""))
    return wanted.get(JSON_TYPE, 0.0) > 0 and wanted[JSON_TYPE] >= max(
        wanted.get(HTML_TYPE, 0.0), wanted.get("text/html", 0.0)
    )


def parse_accept(header: str) -> dict[str, float]:
    qualities: dict[str, float] = {}
    for part in header.split(","):
        kind, _, parameters = part.strip().partition(";")
        _, _, quality = parameters.partition("q=")
        try:
            qualities[kind.strip().lower().replace(".latest+", ".v1+")] = float(quality or 1)
        except ValueError:
            continue
    return qualities


def handle_index_error(_: Request[Any, Any, Any], error: ApiError) -> Response[Problem]:
    """As elsewhere, except that basic credentials are requested: pip and uv know no others."""
    headers = {"www-authenticate": 'Basic realm="Proctor"'} if error.status == 401 else None
    return problem_response(error.problem, error.status, headers)


index = Router(
    "/simple",
    route_handlers=[list_all, list_projects, list_files, read_file],
    exception_handlers={ApiError: handle_index_error},
    response_headers={"cache-control": "private", "content-security-policy": "default-src 'none'"},
    include_in_schema=False,
)
