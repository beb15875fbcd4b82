"""Which file answers which request, and what a browser is told about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.pages.files import BuiltPages
from tests.pages.building import build_small

BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"


@pytest.fixture
def pages(tmp_path: Path) -> BuiltPages:
    return BuiltPages(build_small(tmp_path / "dist"))


@pytest.mark.parametrize("path", ["/", "/runs", "/runs/run-1/t/abc/0", "/e/a/b", "/index.html", "/apiary"])
def test_every_address_of_a_page_answers_the_application(pages: BuiltPages, path: str) -> None:
    answer = pages.answer(path, accept=BROWSER)
    assert answer is not None
    assert (answer.status, b"<!doctype html>" in answer.body) == (200, True)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/api", "/api/v1/runs", "/v1/models", "/v1", "/simple/", "/simple/sums/"])
def test_what_programs_call_is_never_a_page(pages: BuiltPages, path: str) -> None:
    assert pages.answer(path, accept=BROWSER) is None


def test_a_page_names_the_scripts_it_will_need(pages: BuiltPages) -> None:
    answer = pages.answer("/runs/run-1/t/abc/0", accept=BROWSER)
    assert answer is not None
    assert answer.headers["link"] == "</assets/app-1234.js>; rel=modulepreload; crossorigin"
    other = pages.answer("/runs", accept=BROWSER)
    assert other is not None
    assert "link" not in other.headers


def test_a_list_of_scripts_that_cannot_be_read_costs_speed_and_nothing_else(tmp_path: Path) -> None:
    folder = build_small(tmp_path / "dist")
    (folder / "preloads.json").write_text("[{")
    answer = BuiltPages(folder).answer("/runs/run-1/t/abc/0", accept=BROWSER)
    assert answer is not None
    assert answer.status == 200
    assert "link" not in answer.headers


def test_a_program_that_wants_no_page_gets_none(pages: BuiltPages) -> None:
    assert pages.answer("/runs/run-1", accept="application/json") is None
    assert pages.answer("/runs/run-1", accept="*/*") is None


def test_an_asset_is_kept_forever_and_comes_compressed_as_the_browser_likes(pages: BuiltPages) -> None:
    chosen = {}
    for accepted in ("gzip, deflate, br, zstd", "gzip", "br;q=0, gzip", "identity", ""):
        answer = pages.answer("/assets/app-1234.js", accept_encoding=accepted)
        assert answer is not None
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
        assert answer.headers["vary"] == "accept-encoding"
        chosen[accepted] = answer.headers.get("content-encoding", "")
    assert list(chosen.values()) == ["br", "gzip", "gzip", "", ""]


@pytest.mark.parametrize(
    "path",
    [
        "/assets/gone.js",
        "/assets/",
        "/assets/../../files.py",
        "/assets/%2e%2e/files.py",
        "/assets/..%2f..%2f",
    ],
)
def test_a_missing_asset_is_not_found_rather_than_a_page(pages: BuiltPages, path: str) -> None:
    answer = pages.answer(path, accept=BROWSER)
    assert answer is not None
    assert answer.status == 404


@pytest.mark.parametrize("path", ["/../secret", "//etc/passwd", "/.stamp", "/assets/.hidden"])
def test_no_address_leads_to_another_file(pages: BuiltPages, path: str) -> None:
    (pages.folder.parent / "secret").write_text("hunter2")
    (pages.folder / "assets" / ".hidden").write_text("hunter2")
    answer = pages.answer(path, accept=BROWSER)
    assert answer is not None
    assert b"hunter2" not in answer.body


def test_a_page_may_load_nothing_from_elsewhere_and_run_nothing_inline(pages: BuiltPages) -> None:
    answer = pages.answer("/", accept=BROWSER)
    assert answer is not None
    assert answer.headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_an_unchanged_page_is_not_sent_again(pages: BuiltPages) -> None:
    first = pages.answer("/", accept=BROWSER)
    assert first is not None
    again = pages.answer("/runs", accept=BROWSER, known_tag=first.headers["etag"])
    assert again is not None
    assert (again.status, again.body) == (304, b"")


def test_files_that_were_built_again_are_served_at_once(pages: BuiltPages) -> None:
    assert pages.answer("/assets/app-5678.js") is not None
    build_small(pages.folder, name="app-5678.js")
    (pages.folder / "index.html").touch()
    answer = pages.answer("/assets/app-5678.js")
    assert answer is not None
    assert answer.status == 200


def test_without_built_files_the_page_says_how_to_build_them(tmp_path: Path) -> None:
    pages = BuiltPages(tmp_path / "none")
    answer = pages.answer("/runs", accept=BROWSER)
    assert answer is not None
    assert b"make web" in answer.body
    assert pages.answer("/api/v1/runs", accept=BROWSER) is None
