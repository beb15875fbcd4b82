"""How many names and tokens a report reads: anyone may have written the file."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import astuple

from proctor.trace import Usage

SAMPLE_LENGTH = 300
MOST_MEMBERS = 200
"""Environments that a report lists separately: a file may claim any number."""
MOST_NAMES = 500
"""Metrics, models, stop conditions and kinds of errors that a report lists, for the same reason."""
OTHERS = "others"
"""What is counted under no name of its own."""
LONGEST_SECONDS = 1e9
MOST_TOKENS = 10**15
"""Of one rollout: whatever a provider or a file claims beyond, totals can still be written as JSON."""


def bound_usage(usage: Usage) -> Usage:
    every = usage.input_tokens | usage.output_tokens | usage.cached_tokens | usage.reasoning_tokens
    if 0 <= every <= MOST_TOKENS:  # then so is each: no bit is lost, and a sign stays
        return usage
    return Usage(*(max(0, min(count, MOST_TOKENS)) for count in astuple(usage)))


def bounded_name(known: Collection[str], name: str) -> str:
    """The name that something is counted by."""
    return name if name in known or len(known) < MOST_NAMES else OTHERS
