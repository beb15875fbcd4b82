"""The pages of datasets: upload, a cut and continued upload, preview, versions, change and delete."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.server.datasets.pushing import push_rows, sha256_of
from tests.web.bench_site import ROWS, Bench, open_bench
from tests.web.browser import PHONE, THEMES, find_violations, go_by_keys, opened_page, take_screenshot
from tests.web.conftest import Visit, settle, start_session

pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.xdist_group("browser")]

Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def bench(sandboxes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with open_bench(tmp_path_factory.mktemp("bench")) as bench:
        yield bench


@pytest.fixture
def visit(bench: Bench, browser: Browser) -> Iterator[Open]:
    with ExitStack() as opened:

        def open_one(person: str | None, path: str, **options: Any) -> Visit:
            visit = Visit(*opened.enter_context(opened_page(browser, bench.url, **options)))
            if person is not None:
                start_session(visit.page, bench.url, bench.people[person].token)
            visit.page.goto(path)
            return visit

        yield open_one


def choose_file(page: Page, path: Path) -> None:
    page.get_by_role("button", name="Upload", exact=True).click()
    page.get_by_label("File").set_input_files(path)


def test_a_file_is_uploaded_previewed_and_deleted(bench: Bench, visit: Open, tmp_path: Path) -> None:
    file = tmp_path / "capitals of <b>Europe<.jsonl"
    file.write_bytes(
        b'{"question": "France?", "answer": "Paris"}\n{"question": "Italy?", "answer": "Rome"}\n'
    )
    opened = visit("ada", "/datasets")
    opened.watch.expect("404")  # the dataset may be asked for once more while it is deleted
    page = opened.page
    other_tab = visit("ada", "/datasets").page
    settle(other_tab)

    choose_file(page, file)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Name")).to_have_value("capitals-of-b-Europe")
    assert find_violations(page) == []
    take_screenshot(page, "dataset-upload")
    dialog.get_by_label("Name").fill("capitals")
    dialog.get_by_role("button", name="Upload").click()

    page.get_by_text("Uploaded", exact=True).wait_for()
    other_tab.get_by_role("link", name="ada/capitals").wait_for()  # by the feed
    page.get_by_role("link", name="ada/capitals").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("ada/capitals")
    page.get_by_role("cell", name="Paris").wait_for()
    assert bench.people["ada"].get("/datasets/ada/capitals")["latest"]["rows"] == 2

    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Who may read it").select_option("public")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("dialog").wait_for(state="detached")
    page.get_by_text("Public", exact=True).wait_for()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_label("Type capitals to confirm").fill("capitals")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url(re.compile(r"/datasets$"))
    assert bench.people["ada"]("GET", "/datasets/ada/capitals").status == 404


def test_a_cut_upload_continues_where_it_stopped(bench: Bench, visit: Open, tmp_path: Path) -> None:
    data = ROWS * 50_000  # 10 MB: three parts
    file = tmp_path / "large.jsonl"
    file.write_bytes(data)
    opened = visit("ada", "/datasets")
    page = opened.page
    opened.watch.expect("Failed to load resource")
    offsets: list[int] = []

    def cut_second(route: Route) -> None:
        offset = int(route.request.url.rpartition("offset=")[2])
        offsets.append(offset)
        if len(offsets) == 2:
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route("**/api/v1/dataset-uploads/*?offset=*", cut_second)
    choose_file(page, file)
    page.get_by_role("dialog").get_by_role("button", name="Upload").click()

    page.get_by_text("No connection").wait_for()
    page.get_by_text("Uploaded", exact=True).wait_for(timeout=60_000)
    assert offsets == [0, 4 * 2**20, 4 * 2**20, 8 * 2**20]
    assert bench.people["ada"].get("/datasets/ada/large")["latest"]["sha256"] == sha256_of(data)


def test_an_upload_of_a_closed_tab_continues_with_the_same_file_only(
    bench: Bench, visit: Open, tmp_path: Path
) -> None:
    ada = bench.people["ada"]
    upload = ada.post("/datasets/ada/resumed/uploads", {"size": len(ROWS), "format": "jsonl"})["id"]
    ada("PATCH", f"/dataset-uploads/{upload}?offset=0", data=ROWS[:30])
    other, same = tmp_path / "other.jsonl", tmp_path / "same.jsonl"
    other.write_bytes(ROWS * 2)
    same.write_bytes(ROWS)
    page = visit("ada", "/datasets").page

    page.get_by_text("Not finished").wait_for()
    take_screenshot(page, "dataset-stopped-upload")
    page.get_by_label("Continue: ada/resumed").set_input_files(other)
    page.get_by_text("This is not the same file").wait_for()
    page.get_by_label("Continue: ada/resumed").set_input_files(same)
    page.get_by_text("Uploaded", exact=True).wait_for()

    assert ada.get("/datasets/ada/resumed")["latest"]["sha256"] == sha256_of(ROWS)


def test_a_file_that_is_no_dataset_is_refused_with_its_line(visit: Open, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_bytes(ROWS + b"nonsense\n")
    opened = visit("ada", "/datasets")
    opened.watch.expect("Failed to load resource")
    page = opened.page

    choose_file(page, file)
    page.get_by_role("dialog").get_by_role("button", name="Upload").click()

    page.get_by_text(re.compile("Refused: Line 5")).wait_for()
    page.get_by_role("button", name="Cancel ada/bad").click()
    page.get_by_text("Refused").wait_for(state="detached")


def test_a_reader_sees_why_and_a_stranger_sees_nothing(bench: Bench, visit: Open) -> None:
    reader = visit("rita", "/datasets/ada/sums").page
    button = reader.get_by_role("button", name="Upload a version")
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(button).to_have_accessible_description(re.compile("environments:write"))

    stranger = visit("sam", "/datasets/ada/strange")
    expect(stranger.page.get_by_role("button", name="Delete", exact=True)).to_have_attribute(
        "aria-disabled", "true"
    )
    stranger.page.get_by_role("cell", name="<script>alert(1)</script>").wait_for()
    stranger.watch.expect("404")
    stranger.page.goto("/datasets/ada/sums")
    stranger.page.get_by_role("heading", name="Not found").wait_for()
    nobody = visit(None, "/datasets")
    nobody.watch.expect("401")  # of the feed
    nobody.page.get_by_role("link", name="ada/strange").wait_for()
    expect(nobody.page.get_by_role("button", name="Upload")).to_have_attribute("aria-disabled", "true")


def test_the_keyboard_alone_shows_and_deletes_an_old_version(bench: Bench, visit: Open) -> None:
    ada = bench.people["ada"]
    push_rows(ada, "ada", "keyed", b'{"old": 1}\n')
    push_rows(ada, "ada", "keyed", b'{"new": 1}\n')
    page = visit("ada", "/runs").page
    settle(page)
    go_by_keys(page, "d", "/datasets")
    page.get_by_role("link", name="ada/keyed").wait_for()
    page.get_by_role("link", name="ada/keyed").focus()
    page.keyboard.press("Enter")
    old = page.get_by_role("link", name=sha256_of(b'{"old": 1}\n')[:12])
    old.wait_for()
    old.focus()
    page.keyboard.press("Enter")
    page.get_by_role("columnheader", name="old").wait_for()
    page.get_by_role("button", name="Delete ").last.focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Delete").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for(state="detached")
    assert len(ada.get("/datasets/ada/keyed/versions")["items"]) == 1


@pytest.mark.parametrize("theme", THEMES)
def test_the_pages_of_datasets_are_readable_everywhere(visit: Open, theme: str) -> None:
    for name, size in (("desktop", None), ("phone", PHONE)):
        for path, title in (("/datasets", "datasets"), ("/datasets/ada/strange", "dataset")):
            page = visit("ada", path, theme=theme, viewport=size).page
            settle(page)
            shown = page.get_by_role("link", name="ada/strange")
            if title == "dataset":
                shown = page.get_by_role("columnheader", name="<b>column</b>")
            shown.wait_for()
            take_screenshot(page, f"{title}-{name}-{theme}")
            assert find_violations(page) == []
            overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert overflow <= 0
