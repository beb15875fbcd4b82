"""Two rollouts side by side, in a browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.web.browser import PHONE, THEMES, find_violations, take_screenshot, wait_until
from tests.web.conftest import OpenTrace
from tests.web.traced_runs import TraceSite


@pytest.mark.parametrize("theme", THEMES)
def test_the_first_difference_is_marked(traces: TraceSite, open_trace: OpenTrace, theme: str) -> None:
    page, _ = open_trace(traces.diff("right", "wrong"), theme=theme)

    expect(page.get_by_text("1 of 3 steps differ")).to_be_visible()
    pair = page.locator("#p2")
    expect(pair).to_contain_text("First difference")
    expect(pair).to_contain_text("wording")
    expect(pair.locator("[data-side=a]")).to_contain_text("10")
    expect(pair.locator("[data-side=b]")).to_contain_text("a guess")
    wait_until(page, "() => CSS.highlights.get('differs')?.size === 2")
    expect(page.locator("#p0")).to_contain_text("Same")
    take_screenshot(page, f"diff-{theme}")
    assert find_violations(page) == []


def test_a_diff_is_walked_by_keyboard_and_linked_to(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.diff("right", "wrong") + "#p1")

    current = page.locator("article[aria-current=step]").first
    expect(current).to_contain_text("User")
    page.keyboard.press("o")
    expect(page.locator("#p1 [aria-expanded=true]")).to_have_count(2)
    page.keyboard.press("n")
    page.wait_for_url("**#p2")
    page.keyboard.press("k")
    page.wait_for_url("**#p1")
    page.keyboard.press("r")
    expect(page.locator("#p2 [data-side=b] pre")).to_have_text("a guess")
    page.locator("#p2 [data-side=b]").get_by_role("link", name="#2").press("Enter")
    page.wait_for_url("**" + traces.path("wrong") + "#m2")


def test_rollouts_of_a_task_are_compared_from_one_of_them(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.path("right"))

    page.get_by_role("button", name="Compare with").press("Enter")
    page.get_by_role("menuitem", name="Rollout 2, reward 0.000").press("Enter")
    expect(page.get_by_text("First difference", exact=True)).to_be_visible()
    page.get_by_role("link", name="Swap sides").press("Enter")
    expect(page.locator("#p2 [data-side=a]")).to_contain_text("a guess")


def test_the_same_rollout_twice_is_the_same(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.diff("shop", "shop"))

    expect(page.get_by_text("Both rollouts are the same, step for step.")).to_be_visible()


def test_steps_without_a_counterpart_are_named(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.diff("right", "shop"))

    expect(page.get_by_text("No such step").first).to_be_visible()
    take_screenshot(page, "diff-unlike")
    assert find_violations(page) == []


def test_ten_thousand_events_are_compared_within_the_same_page(
    traces: TraceSite, open_trace: OpenTrace
) -> None:
    page, _ = open_trace(traces.diff("many events", "right"))

    expect(page.get_by_text("First difference", exact=True)).to_be_visible()
    assert page.evaluate("() => document.querySelectorAll('*').length") < 6_000


def test_an_address_without_two_rollouts_says_what_it_needs(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, watch = open_trace(traces.path("right"))
    watch.expect("404")

    page.goto("/diff?a=only/one")
    expect(page.get_by_text("Nothing to compare")).to_be_visible()
    page.goto(traces.diff("right", "wrong").replace("/2", "/99"))
    expect(page.get_by_text("Not found")).to_be_visible()


def test_a_phone_shows_one_side_below_the_other(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.diff("right", "wrong"), viewport=PHONE)

    expect(page.locator("#p2")).to_be_in_viewport()
    above, below = (page.locator(f"#p2 [data-side={side}]").bounding_box() for side in "ab")
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"]
    take_screenshot(page, "diff-phone")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
