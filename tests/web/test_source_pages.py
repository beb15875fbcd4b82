"""The pages of sources: add, sync with its log, choose a commit and a recipe, preview, submit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.web.bench_site import HOSTILE_NAME, HOSTILE_RECIPE, RECIPE, Bench, open_bench
from tests.web.browser import PHONE, THEMES, find_violations, go_by_keys, opened_page, take_screenshot
from tests.web.conftest import Visit, settle, start_session

pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.xdist_group("browser")]

Open = Callable[..., Visit]
SLOW_MS = 60_000
"""A fetch starts a sandbox, which takes a while on a busy machine."""


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


def test_a_recipe_is_previewed_and_submitted_by_keyboard_alone(bench: Bench, visit: Open) -> None:
    page = visit("ada", "/runs").page
    page.get_by_role("link", name="Sources").wait_for()
    go_by_keys(page, "o", "/sources")
    link = page.get_by_role("link", name="ada/agents")
    link.wait_for()
    link.focus()
    page.keyboard.press("Enter")
    recipe = page.get_by_role("radio", name="configs/eval/math.toml")
    recipe.wait_for()
    recipe.focus()
    page.keyboard.press("Space")
    page.get_by_text(re.compile("4 rows of 4: all")).wait_for()
    page.get_by_label("Name of the run").focus()
    page.keyboard.type("by-keys")
    page.keyboard.press("Enter")

    summary = page.get_by_role("region", name="What will be played")
    summary.wait_for(timeout=SLOW_MS)
    expect(summary).to_contain_text("parrot")
    assert bench.people["ada"].get("/runs")["items"] == []
    take_screenshot(page, "source-preview")
    page.keyboard.press("Enter")

    page.wait_for_url(re.compile(r"/runs\?new=run-"))
    row = page.get_by_role("row").filter(has_text="by-keys")
    expect(row).to_have_class(re.compile("highlighted"))
    head = bench.checkout.git("rev-parse", "origin/main")
    expect(row).to_contain_text(f"math@{head[:8]}")
    take_screenshot(page, "source-submitted")


def test_an_older_commit_is_chosen_and_a_double_click_starts_one_run(bench: Bench, visit: Open) -> None:
    ada = bench.people["ada"]
    first = bench.checkout.git("rev-parse", "HEAD~1")
    page = visit("ada", f"/sources/{bench.source}?recipe=configs/eval/math.toml").page
    page.get_by_label("Commit", exact=True).select_option(value=first)
    page.get_by_text("This commit has no recipes").wait_for(timeout=SLOW_MS)
    page.get_by_label("Commit", exact=True).select_option(index=0)
    page.get_by_label("Name of the run").fill("twice")
    page.get_by_role("button", name="Preview").click()
    submit = page.get_by_role("button", name="Submit")
    submit.wait_for(timeout=SLOW_MS)
    submit.dblclick()
    page.wait_for_url(re.compile(r"/runs\?new=run-"))
    assert len([run for run in ada.get("/runs")["items"] if run["name"] == "twice"]) == 1


def test_what_is_wrong_stands_at_its_field(bench: Bench, visit: Open) -> None:
    opened = visit("ada", f"/sources/{bench.source}?recipe=configs/eval/absent.toml")
    opened.watch.expect("Failed to load resource")
    page = opened.page
    page.get_by_text("There is no dataset 'absent' of yours").wait_for()
    expect(page.get_by_label("Dataset")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Preview")).to_be_disabled()
    page.get_by_label("Dataset").fill("ada/sums")
    page.get_by_text(re.compile("4 rows of 4")).wait_for()
    page.get_by_label("Rows").fill("7")
    expect(page.get_by_label("Rows")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Rows").fill("1-2")
    page.get_by_text(re.compile("2 rows of 4")).wait_for()
    assert "rows=1-2" in page.url
    page.get_by_role("cell", name=re.compile("this is not valid TOML")).wait_for()
    expect(page.get_by_role("radio", name="configs/eval/broken.toml")).to_be_disabled()


def test_a_sync_shows_in_other_tabs_with_its_log_and_hostile_names_stay_text(
    bench: Bench, visit: Open
) -> None:
    watching = visit("ada", f"/sources/{bench.source}").page
    settle(watching)
    page = visit("ada", f"/sources/{bench.source}").page
    page.get_by_role("radio", name=HOSTILE_RECIPE).wait_for()
    commits = page.get_by_label("Commit", exact=True)
    commits.locator("option", has_text="<script>").first.wait_for(state="attached")
    bench.checkout.commit({"configs/eval/later.toml": RECIPE.format(dataset="sums")}, "Add a later recipe")
    bench.checkout.push()

    page.get_by_role("button", name="Sync now").click()
    watching.get_by_role("button", name="Syncing…").wait_for(timeout=SLOW_MS)
    watching.get_by_role("radio", name="configs/eval/later.toml").wait_for(timeout=SLOW_MS)
    newest = page.locator("details").first
    newest.get_by_text("by ada", exact=True).wait_for()
    newest.locator("summary").click()
    expect(newest).to_contain_text("Fetched commit")
    expect(newest).to_contain_text("Add a later recipe")
    take_screenshot(page, "source-synced")


def test_a_repository_is_added_refused_and_removed(bench: Bench, visit: Open) -> None:
    opened = visit("ada", "/sources")
    opened.watch.expect("Failed to load resource")
    page = opened.page
    page.get_by_role("button", name="Add a repository").click()
    page.get_by_label("Address").fill("/etc/secrets.git")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("--allow-source-path").wait_for()
    assert find_violations(page) == []
    page.get_by_label("Address").fill("https://git.example.org/x.git")
    page.get_by_label("Token", exact=True).wait_for()
    page.get_by_label("Address").fill(str(bench.checkout.remote))
    page.get_by_label("Name", exact=True).fill("spare")
    page.get_by_role("button", name="Add", exact=True).click()

    page.get_by_role("region", name="Secret of the webhook").wait_for()
    expect(page.get_by_role("region", name="Address of the webhook")).to_contain_text("/webhook")
    page.get_by_role("button", name="Open the source").click()
    page.get_by_text("Not synced yet").first.wait_for()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    page.wait_for_url(re.compile(r"/sources$"))
    page.get_by_role("link", name="ada/agents").wait_for()
    expect(page.get_by_role("link", name="ada/spare")).to_have_count(0)


def test_readers_strangers_and_ended_sessions(bench: Bench, visit: Open) -> None:
    reader = visit("rita", f"/sources/{bench.source}")
    reader.watch.expect("Failed to load resource")  # fetching a commit needs the right to run it
    button = reader.page.get_by_role("button", name="Sync now")
    expect(button).to_have_accessible_description(re.compile("runs:write"))
    expect(reader.page.get_by_role("button", name="Remove")).to_have_attribute("aria-disabled", "true")

    stranger = visit("sam", f"/sources/{bench.source}")
    stranger.watch.expect("404")
    stranger.page.get_by_role("heading", name="Not found").wait_for()
    stranger.page.goto("/sources")
    stranger.page.get_by_text("No repositories yet").wait_for()
    expect(stranger.page.get_by_role("main")).to_contain_text(f"proctor login {bench.url}")

    ada = bench.people["ada"]
    token = ada.post("/tokens", {"name": "short"})
    bench.people["brief"] = type(ada)(bench.url, token["secret"])
    brief = visit("brief", f"/sources/{bench.source}?rows=1-2")
    settle(brief.page)
    brief.watch.expect("401|Failed to load resource")
    ada.ok("DELETE", f"/tokens/{token['token']['id']}")
    brief.page.reload()
    brief.page.get_by_text("Your session has ended").wait_for()
    take_screenshot(brief.page, "login-ended")
    brief.page.get_by_label("Token").fill(ada.token)
    brief.page.get_by_role("button", name="Log in").click()
    brief.page.wait_for_url(re.compile(rf"/sources/{bench.source}\?rows=1-2"))


@pytest.mark.parametrize("theme", THEMES)
def test_the_pages_of_sources_are_readable_everywhere(bench: Bench, visit: Open, theme: str) -> None:
    for name, size in (("desktop", None), ("phone", PHONE)):
        for path, title in (("/sources", "sources"), (f"/sources/{bench.source}", "source")):
            page = visit("ada", path, theme=theme, viewport=size).page
            settle(page)
            if title == "source":
                page.get_by_text(HOSTILE_NAME).first.wait_for()
                page.get_by_text(re.compile("4 rows of 4")).wait_for()
            take_screenshot(page, f"{title}-{name}-{theme}")
            assert find_violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
