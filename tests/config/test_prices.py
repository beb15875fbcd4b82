"""What a run is said to have cost."""

from __future__ import annotations

import pytest

from proctor.config.prices import PRICES, Price, find_price
from proctor.trace import Usage


@pytest.mark.parametrize(
    ("written", "listed"),
    [
        ("gpt-4.1-mini", "gpt-4.1-mini"),
        ("openai/gpt-4.1-mini", "gpt-4.1-mini"),
        ("gpt-4.1-mini-2025-04-14", "gpt-4.1-mini"),
        ("openai/gpt-5-2025-08-07", "gpt-5"),
        ("gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("google/gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
        ("x-ai/grok-4-0709", "grok-4-0709"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
    ],
)
def test_a_model_is_known_by_every_usual_way_to_write_it(written: str, listed: str) -> None:
    assert find_price(written) is PRICES[listed]


@pytest.mark.parametrize(
    "model",
    [
        "gpt-5-codex-mini",
        "gpt-5-turbo",
        "gpt-4.1-mini-ft",
        "ft:gpt-4o-2024-08-06:team::abc",
        "gpt-4o-audio-preview-2024-12-17",
        "claude-opus-4-9",
        "claude-haiku-5-5-20261399",
        "gemini-2.5-flash-image",
        "mistral-large-2407",
        "mistral-large-latest",
        "grok-4-0801",
        "someone/gpt-5",
        "deepseek-v4-pro:free",
        "",
    ],
)
def test_a_model_that_is_not_listed_has_no_price_rather_than_a_neighbors(model: str) -> None:
    assert find_price(model) is None


def test_a_snapshot_that_costs_more_than_its_successors_keeps_its_own_price() -> None:
    first, later = find_price("gpt-4o-2024-05-13"), find_price("gpt-4o-2024-11-20")

    assert first is not None
    assert later is not None
    assert first.output > later.output


def test_remembered_input_costs_less_and_is_not_paid_twice() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)

    assert Price(2.0, 8.0, 0.5).of(usage) == pytest.approx(0.6 * 2.0 + 0.4 * 0.5 + 0.1 * 8.0)
    assert Price(2.0, 8.0).of(usage) == pytest.approx(2.0 + 0.8)


def test_no_listed_price_is_a_slip_of_the_pen() -> None:
    for name, price in PRICES.items():
        if name not in ("local", "scripted"):
            assert 0 < price.input <= price.output, name
            assert price.cached is None or price.cached < price.input, name
