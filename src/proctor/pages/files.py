"""Which file of the dashboard answers a request, and with which headers.

    pages = BuiltPages()
    answer = pages.answer("/runs/run-1", accept="text/html", accept_encoding="br, gzip")

Every page is `index.html`, which finds out by its address what to show; `/assets/` holds files whose names
contain a hash of their content, so that browsers keep them forever. Beside a file may stand the same file
compressed (`.br`, `.gz`). `preloads.json` says which scripts a page needs. Knows nothing of HTTP servers.
"""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import msgspec

from proctor.pages.security_headers import PAGE_HEADERS, SAFE_HEADERS

DIST = "dist"
"""Folder of the built files in this package."""
INDEX = "index.html"
PRELOADS = "preloads.json"
ASSETS = "/assets/"
STAMP = ".stamp"
"""File with the hash of the sources that the files were built from."""
OTHER_PATHS = ("/api", "/v1", "/simple")
"""What programs call; a page never answers there."""
ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""The best first."""
FOREVER = "public, max-age=31536000, immutable"
BRIEFLY = "public, max-age=300"
NOT_BUILT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Proctor</title>
<h1>The dashboard is not built</h1>
<p>Proctor is running and its API works, but this installation lacks the pages: run <code>make web</code> in
the source tree, or install a released package, which has them. The command line does everything that the
pages do: <code>proctor --help</code>.</p>
</html>
"""


@dataclass(frozen=True)
class PageAnswer:
    """What to send."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Preload(msgspec.Struct, frozen=True):
    """The scripts that pages with some addresses need."""

    pattern: str
    files: list[str]


class BuiltPages:
    """The files of a built dashboard; without any, a page that says how to build them."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(str(files("proctor.pages").joinpath(DIST)))
        self._built_at: int | None = None
        self._paths: dict[str, Path] = {}
        """Files by the path that requests them. They are looked up here, so that no path leads elsewhere."""
        self._preloads: list[tuple[re.Pattern[str], str]] = []
        """Patterns of addresses, each with the `Link` header of its pages."""

    def are_built(self) -> bool:
        return (self.folder / INDEX).is_file()

    def _list_files(self) -> dict[str, Path]:
        """All files; listed again after they were built again."""
        try:
            built_at: int | None = (self.folder / INDEX).stat().st_mtime_ns
        except OSError:
            built_at = None
        if built_at != self._built_at:
            found = (path for path in self.folder.rglob("*") if is_public(path))
            self._paths = {f"/{path.relative_to(self.folder).as_posix()}": path for path in found}
            self._preloads = read_preloads(self._paths.get(f"/{PRELOADS}"))
            self._built_at = built_at
        return self._paths if built_at is not None else {}

    def answer(
        self, path: str, *, accept: str = "", accept_encoding: str = "", known_tag: str = ""
    ) -> PageAnswer | None:
        """The answer to a GET; None if the path is not a page's. `known_tag` is the request's
        `If-None-Match`."""
        if path in OTHER_PATHS or path.startswith(tuple(f"{each}/" for each in OTHER_PATHS)):
            return None
        known = self._list_files()
        if path in known and path != f"/{INDEX}":
            headers = {**SAFE_HEADERS, "cache-control": FOREVER if path.startswith(ASSETS) else BRIEFLY}
            return read_answer(known, path, headers, accept_encoding, known_tag)
        if path.startswith(ASSETS):
            return PageAnswer(
                404, {**SAFE_HEADERS, "content-type": "text/plain"}, b"There is no such file.\n"
            )
        if "text/html" not in accept:
            return None
        if not known:
            headers = {**PAGE_HEADERS, "content-type": "text/html; charset=utf-8"}
            return PageAnswer(200, headers, NOT_BUILT.encode())
        links = next((links for pattern, links in self._preloads if pattern.search(path)), "")
        headers = {**PAGE_HEADERS, "link": links} if links else PAGE_HEADERS
        return read_answer(known, f"/{INDEX}", headers, accept_encoding, known_tag)


def read_preloads(path: Path | None) -> list[tuple[re.Pattern[str], str]]:
    if path is None:
        return []
    try:
        listed = msgspec.json.decode(path.read_bytes(), type=list[Preload])
    except (OSError, msgspec.MsgspecError):  # they are being built right now
        return []
    return [(re.compile(each.pattern), ", ".join(map(write_link, each.files))) for each in listed]


def write_link(script: str) -> str:
    """A script as a value of the `Link` header."""
    return f"</{script}>; rel=modulepreload; crossorigin"


def is_public(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".")


def read_answer(
    known: Mapping[str, Path], path: str, headers: Mapping[str, str], accept_encoding: str, known_tag: str
) -> PageAnswer:
    encoding, suffix = choose_encoding(known, path, accept_encoding)
    try:
        body = known[path + suffix].read_bytes()
    except OSError:  # they are being built right now
        return PageAnswer(503, {**SAFE_HEADERS, "content-type": "text/plain", "retry-after": "2"})
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    sent = {**headers, "content-type": guess_type(path), "vary": "accept-encoding", "etag": tag}
    if encoding:
        sent["content-encoding"] = encoding
    return PageAnswer(304, sent) if tag in known_tag else PageAnswer(200, sent, body)


def choose_encoding(known: Mapping[str, Path], path: str, accept_encoding: str) -> tuple[str, str]:
    accepted = list_accepted(accept_encoding)
    for encoding, suffix in ENCODINGS.items():
        if encoding in accepted and path + suffix in known:
            return encoding, suffix
    return "", ""


def list_accepted(accept_encoding: str) -> set[str]:
    """The encodings that a client accepts; not those with a weight of zero."""
    found = set()
    for each in accept_encoding.lower().split(","):
        name, _, weight = each.partition(";")
        if weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            found.add(name.strip())
    return found


def guess_type(path: str) -> str:
    known = {".js": "text/javascript", ".mjs": "text/javascript", ".webmanifest": "application/manifest+json"}
    kind = known.get(Path(path).suffix) or mimetypes.guess_type(path)[0] or "application/octet-stream"
    is_text = kind.startswith("text/") or kind in ("application/json", "image/svg+xml")
    return f"{kind}; charset=utf-8" if is_text else kind
