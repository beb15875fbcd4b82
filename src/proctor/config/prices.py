"""What well-known models cost, in US dollars per million tokens.

List prices of the makers' own APIs for requests of ordinary length: where a longer prompt has another price,
the one below the threshold stands here. A model that is not listed has no price, rather than a neighbor's.
Knows nothing of runs.
"""

from __future__ import annotations

import re

import msgspec

from proctor.trace import Usage

AS_OF = "2026-10-10"
"""The newest day on which a price below was read; each maker's own day stands beside its models."""


class Price(msgspec.Struct, frozen=True):
    """Dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Of input that the provider still remembers; without one, as any input."""

    def of(self, usage: Usage) -> float:
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input_tokens - usage.cached_tokens
        return (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / 1e6


FREE = Price(0.0, 0.0)
PRICES: dict[str, Price] = {
    # OpenAI, 2026-09-30
    "gpt-6-astra": Price(10.0, 50.0, 1.0),
    "gpt-6-sol": Price(2.0, 10.0, 0.2),
    "gpt-6-luna": Price(0.1, 0.5, 0.01),
    "gpt-6.1-sol": Price(2.0, 10.0, 0.1),
    "gpt-5.5": Price(5.0, 30.0, 0.5),
    "gpt-5.5-pro": Price(30.0, 180.0),
    "gpt-5.4": Price(2.5, 15.0, 0.25),
    "gpt-5.4-mini": Price(0.75, 4.5, 0.075),
    "gpt-5.4-nano": Price(0.2, 1.25, 0.02),
    "gpt-5.2": Price(1.75, 14.0, 0.175),
    "gpt-5.1": Price(1.25, 10.0, 0.125),
    "gpt-5": Price(1.25, 10.0, 0.125),
    "gpt-5-mini": Price(0.25, 2.0, 0.025),
    "gpt-5-nano": Price(0.05, 0.4, 0.005),
    "gpt-5-pro": Price(15.0, 120.0),
    "gpt-4.1": Price(2.0, 8.0, 0.5),
    "gpt-4.1-mini": Price(0.4, 1.6, 0.1),
    "gpt-4.1-nano": Price(0.1, 0.4, 0.025),
    "gpt-4o": Price(2.5, 10.0, 1.25),
    "gpt-4o-2024-05-13": Price(5.0, 15.0),
    "gpt-4o-mini": Price(0.15, 0.6, 0.075),
    "gpt-4-turbo": Price(10.0, 30.0),
    "gpt-3.5-turbo": Price(0.5, 1.5),
    "o3": Price(2.0, 8.0, 0.5),
    "o3-mini": Price(1.1, 4.4, 0.55),
    "o4-mini": Price(1.1, 4.4, 0.275),
    # Anthropic, 2026-10-10
    "claude-fable-5-1": Price(10.0, 50.0, 0.25),
    "claude-fable-5": Price(10.0, 50.0, 1.0),
    "claude-opus-5-5": Price(4.0, 20.0, 0.2),
    "claude-opus-5": Price(5.0, 25.0, 0.5),
    "claude-opus-4-8": Price(5.0, 25.0, 0.5),
    "claude-opus-4-7": Price(5.0, 25.0, 0.5),
    "claude-opus-4-6": Price(5.0, 25.0, 0.5),
    "claude-opus-4-5": Price(5.0, 25.0, 0.5),
    "claude-opus-4-1": Price(15.0, 75.0, 1.5),
    "claude-opus-4": Price(15.0, 75.0, 1.5),
    "claude-sonnet-5-5": Price(2.0, 10.0, 0.1),
    "claude-sonnet-5": Price(2.0, 10.0, 0.2),
    "claude-sonnet-4-6": Price(3.0, 15.0, 0.3),
    "claude-sonnet-4-5": Price(3.0, 15.0, 0.3),
    "claude-sonnet-4": Price(3.0, 15.0, 0.3),
    "claude-haiku-5-5": Price(0.1, 0.5, 0.01),
    "claude-haiku-4-5": Price(1.0, 5.0, 0.1),
    "claude-3-7-sonnet": Price(3.0, 15.0, 0.3),
    "claude-3-5-haiku": Price(0.8, 4.0, 0.08),
    # Google, 2026-10-07; 3.6 to 3.8 Flash cost twice as much from 2027 on
    "gemini-3.8-flash": Price(0.75, 3.75),
    "gemini-3.6-flash": Price(0.75, 3.75, 0.075),
    "gemini-3.5-flash": Price(1.5, 9.0, 0.15),
    "gemini-3.5-flash-lite": Price(0.3, 2.5),
    "gemini-3.1-pro-preview": Price(2.0, 12.0),
    "gemini-2.5-pro": Price(1.25, 10.0, 0.125),
    "gemini-2.5-flash": Price(0.3, 2.5, 0.03),
    "gemini-2.5-flash-lite": Price(0.1, 0.4, 0.01),
    # xAI, 2026-09
    "grok-4.7": Price(2.0, 6.0, 0.5),
    "grok-4.5": Price(2.0, 6.0, 0.5),
    "grok-4.3": Price(1.25, 2.5, 0.2),
    "grok-4-0709": Price(3.0, 15.0, 0.75),
    "grok-4": Price(3.0, 15.0, 0.75),
    "grok-4-fast": Price(0.2, 0.5, 0.05),
    "grok-4-fast-reasoning": Price(0.2, 0.5, 0.05),
    "grok-4-fast-non-reasoning": Price(0.2, 0.5, 0.05),
    "grok-code-fast-1": Price(0.2, 1.5, 0.02),
    "grok-3": Price(3.0, 15.0, 0.75),
    "grok-3-mini": Price(0.3, 0.5, 0.075),
    # Mistral, 2026-08-24; its names end in the month, and another month is another model
    "mistral-large-2512": Price(0.5, 1.5, 0.05),
    "mistral-large-2411": Price(2.0, 6.0),
    "mistral-medium-3-5": Price(1.5, 7.5, 0.15),
    "mistral-medium-2508": Price(0.4, 2.0, 0.04),
    "mistral-medium-2505": Price(0.4, 2.0, 0.04),
    "mistral-small-2603": Price(0.15, 0.6, 0.015),
    "ministral-8b-2512": Price(0.15, 0.15, 0.015),
    "ministral-3b-2512": Price(0.1, 0.1, 0.01),
    "devstral-2512": Price(0.4, 2.0, 0.04),
    "codestral-2508": Price(0.3, 0.9, 0.03),
    # DeepSeek, 2026-06-02
    "deepseek-v4-pro": Price(0.435, 0.87, 0.003625),
    "deepseek-v4-flash": Price(0.14, 0.28, 0.0028),
    # Alibaba, 2026-06
    "qwen3-max": Price(1.2, 6.0, 0.24),
    # In this process
    "local": FREE,
    "scripted": FREE,
}

MAKERS = (
    "openai/",
    "anthropic/",
    "google/",
    "models/",
    "x-ai/",
    "xai/",
    "mistralai/",
    "mistral/",
    "deepseek/",
    "qwen/",
    "alibaba/",
)
"""What may stand before a name without making it another model."""

DATE = re.compile(r"-20\d{2}(-?)(0[1-9]|1[0-2])\1(0[1-9]|[12]\d|3[01])$")


def find_price(model: str) -> Price | None:
    """The list price, also for `maker/name` and for names that end in a date."""
    name = next((model.removeprefix(maker) for maker in MAKERS if model.startswith(maker)), model)
    if name.startswith("claude-"):
        name = name.replace(".", "-")  # some resellers write claude-sonnet-4.5
    return PRICES.get(name) or PRICES.get(DATE.sub("", name))
