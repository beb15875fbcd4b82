"""The same run in both stores: a folder that `proctor view` reads, and a server that it was uploaded to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from proctor.api.field_problems import decode_query
from proctor.api.refusals import ApiError
from proctor.client.connection import ServerConnection
from proctor.client.contexts import Context
from proctor.listeners.upload import UploadNames, push_folder
from proctor.reading.exchange import Download, ReadRequest
from proctor.reading.folders.find import find_run_folders
from proctor.reading.folders.library import FolderLibrary
from proctor.reading.routes import READING_ROUTES
from tests.server.serving import Api


class Reply(NamedTuple):
    status: int
    body: Any


class FolderStore:
    """Answers as `proctor view` gives them."""

    def __init__(self, base: Path) -> None:
        self._base = base

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Reply:
        return asyncio.run(self._get(path, list_pairs(query)))

    async def _get(self, path: str, pairs: list[tuple[str, str]]) -> Reply:
        library = FolderLibrary(lambda: find_run_folders([self._base]))
        try:
            route, values = find_route(path)
            asked = None if route.query is None else decode_query(pairs, route.query)
            answer = await route.handler(library, ReadRequest(values, asked))
            return Reply(200, await read_body(answer))
        except ApiError as error:
            return Reply(error.status, msgspec.to_builtins(error.problem))
        finally:
            library.close()


class ServerStore:
    """Answers as a server gives them, over HTTP."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Reply:
        answer = self._api("GET", f"{path}?{urlencode(list_pairs(query))}")
        return Reply(answer.status, answer.body)

    def upload(self, folder: Path, **names: Any) -> str:
        """As `proctor eval push` does; returns the run's id."""

        async def push() -> str:
            async with ServerConnection(Context(url=self._api.url, token=self._api.token)) as server:
                run, _ = await push_folder(server, folder, UploadNames(**names))
                return run.id

        return asyncio.run(push())


Store = FolderStore | ServerStore


def list_pairs(query: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    return [
        (name, str(each).lower() if isinstance(each, bool) else str(each))
        for name, value in (query or {}).items()
        for each in (value if isinstance(value, list) else [value])
    ]


def find_route(path: str) -> tuple[Any, dict[str, str]]:
    """The route of a path, with what stands for its parameters; words come before parameters."""
    words = path.split("/")
    for route in sorted(READING_ROUTES, key=lambda route: route.path.count("{")):
        parts = route.path.split("/")
        if len(parts) == len(words) and all(
            part == word or part.startswith("{") for part, word in zip(parts, words, strict=True)
        ):
            pairs = zip(parts, words, strict=True)
            return route, {part.strip("{}"): word for part, word in pairs if part.startswith("{")}
    raise AssertionError(f"no route answers {path}")


async def read_body(answer: Any) -> Any:
    if not isinstance(answer, Download):
        return json.loads(msgspec.json.encode(answer))
    body = answer.body
    raw = body if isinstance(body, bytes) else b"".join([chunk async for chunk in body])
    return json.loads(raw) if answer.media_type == "application/json" else raw.decode()
