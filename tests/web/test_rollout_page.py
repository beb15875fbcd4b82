"""The page of one rollout: everything that happened, in a browser, however long and however hostile."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.web.browser import PHONE, THEMES, find_violations, take_screenshot, wait_until
from tests.web.conftest import OpenTrace
from tests.web.hostile_content import HOSTILE_TEXTS, LONG_LINE, MARK
from tests.web.traced_runs import NEEDLE, TraceSite

MOST_NODES = 6_000
RUNS_FOREIGN_CODE = f"() => '{MARK}' in window || document.title.includes('{MARK}')"
DANGEROUS = (
    "main img, main iframe, main script, main style, main base, main object, main a[href^='javascript']"
)


def step(page: Page, index: int) -> Locator:
    return page.locator(f"#m{index}")


def place(page: Page) -> str:
    return page.get_by_title("Step, of those shown").inner_text()


@pytest.mark.parametrize("theme", THEMES)
def test_a_rollout_shows_what_was_said_done_and_given(
    traces: TraceSite, open_trace: OpenTrace, theme: str
) -> None:
    page, _ = open_trace(traces.path("shop"), theme=theme)

    expect(step(page, 1)).to_contain_text("I should look up both prices first.")
    expect(step(page, 1).get_by_role("region", name="Arguments of price").first).to_contain_text("apple")
    expect(step(page, 1).get_by_role("region", name="Result of price").nth(1)).to_contain_text("caviar")
    expect(step(page, 3).get_by_text("two apples")).to_have_css("font-weight", "700")
    details = page.get_by_role("complementary", name="Details")
    expect(details).to_contain_text("bought_the_right_things")
    expect(details).to_contain_text("3 calls")
    expect(page.get_by_role("img", name=re.compile("waiting for models"))).to_be_visible()
    take_screenshot(page, f"rollout-{theme}")
    assert find_violations(page) == []


def test_formulas_code_and_judges_are_rendered(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.path("judged"))

    expect(page.locator("#m1 math")).to_have_count(2)
    expect(step(page, 1)).to_contain_text("It costs $5.00.")
    expect(step(page, 1).get_by_role("heading", name="Steps")).to_be_visible()
    expect(step(page, 2)).to_contain_text("Judge")
    step(page, 2).get_by_text("What it was asked").click()
    expect(step(page, 2)).to_contain_text("Decide whether")
    take_screenshot(page, "rollout-judged")


def test_a_message_is_shown_raw_and_as_it_was_sent(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.path("judged"))

    page.keyboard.press("r")
    expect(step(page, 1).locator("pre")).to_contain_text("## Steps\n\n1. Add: \\(40 + 2\\)")
    assert "view=raw" in page.url
    page.keyboard.press("r")
    expect(step(page, 1).locator("math")).to_have_count(2)
    page.keyboard.press("s")
    sent = page.get_by_role("region", name="As sent").last
    expect(sent).to_contain_text('"content": "What is 40 + 2?"')
    page.get_by_role("button", name="Next call").click()
    expect(sent).to_contain_text('"model": "judge-model"')
    take_screenshot(page, "rollout-sent")


def test_filters_hide_kinds_of_steps_and_are_in_the_address(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.path("shop"))

    page.get_by_role("checkbox", name="Tools").uncheck()
    expect(page.get_by_role("region", name="Result of price")).to_have_count(0)
    expect(step(page, 1)).to_contain_text("I should look up both prices first.")
    page.get_by_role("checkbox", name="Reasoning").uncheck()
    expect(step(page, 1)).to_have_count(0)
    assert place(page) == "1 / 3"
    page.reload()
    expect(page.get_by_role("checkbox", name="Tools")).not_to_be_checked()
    expect(step(page, 3)).to_be_visible()
    assert "show=system&show=judge" in page.url


def test_steps_are_walked_folded_and_linked_by_keyboard(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.path("shop") + "#m1")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    expect(step(page, 1).get_by_role("article")).to_have_attribute("aria-current", "step")
    page.keyboard.press("j")
    expect(step(page, 2).get_by_role("article")).to_have_attribute("aria-current", "step")
    assert place(page) == "3 / 4"
    page.keyboard.press("o")
    expect(step(page, 2).get_by_role("region", name="Result of buy")).to_have_count(0)
    page.keyboard.press("o")
    expect(step(page, 2).get_by_role("region", name="Result of buy")).to_be_visible()
    page.keyboard.press("k")
    page.keyboard.press("y")
    wait_until(page, "() => navigator.clipboard.readText().then((text) => text.endsWith('#m1'))")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Next match, or next failed step")


def test_brackets_lead_to_the_next_rollout_and_the_next_task(
    traces: TraceSite, open_trace: OpenTrace
) -> None:
    page, _ = open_trace(traces.path("right") + "?view=raw")

    assert page.get_by_title("Place of this rollout in the list it was opened from").inner_text() == "13 / 36"
    page.keyboard.press("]")
    page.wait_for_url("**/1?view=raw")
    expect(page.get_by_title("Place of this rollout in the list it was opened from")).to_have_text("14 / 36")
    page.keyboard.press("}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Task 5")
    page.keyboard.press("{")
    page.keyboard.press("]")
    expect(page.get_by_title("Place of this rollout in the list it was opened from")).to_have_text("14 / 36")
    page.keyboard.press("[")
    page.wait_for_url("**" + traces.path("right") + "?view=raw")


def test_failed_calls_errors_and_earlier_attempts_are_named(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.path("refused"))
    page.keyboard.press("n")
    failed = page.locator("article[aria-current=step]")
    expect(failed).to_contain_text("Failed model call")
    expect(page.get_by_role("complementary", name="Details")).to_contain_text("RequestRefusedError")

    again, _ = open_trace(traces.path("retried"))
    details = again.get_by_role("complementary", name="Details")
    expect(again.get_by_text("2 attempts")).to_be_visible()
    expect(details).to_contain_text("Attempt 1")
    expect(details).to_contain_text("the model was busy")
    assert find_violations(again) == []


def test_changed_files_open_as_diffs(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.path("workshop"))

    file = page.get_by_role("button", name="new.txt", exact=True)
    file.press("Enter")
    dialog = page.get_by_role("dialog", name="new.txt")
    expect(dialog).to_contain_text("+one")
    take_screenshot(page, "rollout-file")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(file).to_be_focused()
    expect(step(page, 1).get_by_text("green", exact=True)).to_be_visible()


def test_pictures_are_shown_from_the_row_and_never_fetched_from_elsewhere(
    traces: TraceSite, open_trace: OpenTrace
) -> None:
    page, _ = open_trace(traces.path("pictures"))

    pictures = page.locator("main img")
    expect(pictures).to_have_count(1)
    wait_until(page, "() => document.querySelector('main img').naturalWidth === 64")
    expect(step(page, 0)).to_contain_text("Image elsewhere, not loaded: https://evil.example/pixel.png")
    expect(step(page, 0)).to_contain_text("An image (image/svg+xml, 60 B) that cannot be shown")
    page.get_by_role("button", name="Show the image (image/png, 1.5 MB)").click()
    expect(pictures).to_have_count(2)
    wait_until(page, "() => document.querySelectorAll('main img')[1].naturalWidth === 700")


def test_a_row_of_another_tool_fits(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.path("foreign"))

    expect(page.get_by_role("article")).to_have_count(3)
    expect(page.get_by_role("complementary", name="Details")).to_contain_text("1.000")
    page.keyboard.press("s")
    expect(page.get_by_text("No model calls were recorded")).to_be_visible()


def test_hostile_content_is_text(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.path("hostile script"))
    kinds = list(HOSTILE_TEXTS)
    for number, kind in enumerate(kinds):
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"Task {number}")
        expect(step(page, 1).locator("[class*=preview]")).to_have_count(0)
        text = page.evaluate("() => document.querySelector('main').innerText")
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202e]", text), kind
        assert page.locator(DANGEROUS).count() == 0, kind
        if number + 1 < len(kinds):
            page.keyboard.press("]")
    assert not page.evaluate(RUNS_FOREIGN_CODE)
    for kind in ("script", "javascript link", "right to left"):
        page.goto(traces.path(f"hostile {kind}") + "?view=raw")
        expect(step(page, 0).locator("pre")).to_be_visible()
    take_screenshot(page, "rollout-hostile")
    expect(step(page, 0)).to_contain_text("⟨U+202E⟩gnp.exe")


def test_a_line_of_ten_megabytes_has_its_head_and_tail_and_opens_whole(
    traces: TraceSite, open_trace: OpenTrace
) -> None:
    page, _ = open_trace(traces.path("one line"))

    last = page.get_by_role("article").last
    expect(last).to_contain_text("xEND")
    assert len(last.inner_text()) < 20_000
    last.get_by_role("button", name=f"Open all {LONG_LINE + 3:,}").press("Enter")
    whole = page.get_by_role("dialog").get_by_role("region", name="Text")
    whole.focus()
    page.keyboard.press("End")
    expect(whole).to_contain_text("END")
    take_screenshot(page, "rollout-long-line")
    assert page.evaluate("() => document.querySelectorAll('*').length") < MOST_NODES


def test_a_page_of_ten_megabytes_stays_small_and_shows_more_on_request(
    traces: TraceSite, open_trace: OpenTrace
) -> None:
    page, _ = open_trace(traces.path("large") + "#m150")

    expect(step(page, 150)).to_be_in_viewport()
    expect(step(page, 150).get_by_role("heading", name="Part 148")).to_be_visible()
    assert page.evaluate("() => document.querySelectorAll('*').length") < MOST_NODES
    page.keyboard.press("j")
    expect(step(page, 151).get_by_role("heading", name="Part 149")).to_be_in_viewport()
    step(page, 151).get_by_role("button", name="Show all 50,000").click()
    expect(step(page, 151).get_by_role("button", name="Show all 50,000")).to_have_count(0)


def test_a_link_into_ten_thousand_events_lands_on_its_step(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.path("many events") + "#m6500")

    expect(step(page, 6500)).to_be_in_viewport()
    expect(step(page, 6500)).to_contain_text("Turn 3249")
    box = page.get_by_role("region", name="Conversation").bounding_box()
    found = step(page, 6500).bounding_box()
    assert box is not None
    assert found is not None
    assert abs(found["y"] - box["y"]) < 100
    assert page.evaluate("() => document.querySelectorAll('*').length") < MOST_NODES


def test_a_long_trace_can_be_read_before_all_of_it_is_known(traces: TraceSite, open_trace: OpenTrace) -> None:
    held: list[Route] = []
    page, _ = open_trace(traces.path("right"))
    page.route(re.compile(r"/rollouts/[^/]+/\d+$"), lambda route: held.append(route))
    page.goto(traces.path("many events"))

    details = page.get_by_role("complementary", name="Details")
    expect(step(page, 3)).to_contain_text("Go on, 0.")
    assert place(page) == "1 / …"
    expect(details).to_contain_text("Reward")
    expect(details).not_to_contain_text("calls")
    page.keyboard.press("j")
    expect(page.get_by_title("Step, of those shown")).to_have_text("2 / …")

    for request in held:
        request.continue_()
    expect(page.get_by_title("Step, of those shown")).to_have_text("2 / 10,002")
    expect(details).to_contain_text("5,000 calls")


def test_text_is_found_in_a_trace_that_is_not_all_in_the_page(
    traces: TraceSite, open_trace: OpenTrace
) -> None:
    page, _ = open_trace(traces.path("many events"))

    page.keyboard.press("/")
    page.keyboard.insert_text(NEEDLE.upper())  # at once: a part of it is found too
    expect(page.get_by_text("1 match")).to_be_visible()
    page.keyboard.press("Enter")
    expect(step(page, 7002)).to_contain_text(NEEDLE)
    expect(step(page, 7002)).to_be_in_viewport()
    wait_until(page, "() => CSS.highlights.get('find')?.size === 1")
    page.keyboard.press("Escape")
    expect(page.get_by_text("1 match")).to_have_count(0)
    page.keyboard.press("j")
    expect(step(page, 7003)).to_be_in_viewport()


def test_a_phone_shows_one_column(traces: TraceSite, open_trace: OpenTrace) -> None:
    page, _ = open_trace(traces.path("shop"), viewport=PHONE)

    expect(page.get_by_role("complementary", name="Details")).to_be_hidden()
    take_screenshot(page, "rollout-phone")
    page.get_by_text("Details", exact=True).click()
    expect(page.get_by_role("complementary", name="Details")).to_be_visible()
    expect(page.get_by_role("region", name="Conversation")).to_be_hidden()
    page.get_by_role("button", name="#2 agent").click()
    expect(step(page, 2)).to_be_in_viewport()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
    assert find_violations(page) == []
