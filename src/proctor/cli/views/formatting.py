"""Format counts, rates, durations, dates, money and estimates; each kind of value has one format."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from proctor.config.schema import UNLIMITED

if TYPE_CHECKING:
    from proctor.stats.mean import MeanEstimate

PHASES = {
    "setup": "while starting",
    "generation": "while playing",
    "scoring": "while scoring",
    "cleanup": "while closing",
}


def format_quantity(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_limit(count: int) -> str:
    return "unlimited" if count >= UNLIMITED else str(count)


def percent_done(part: int, whole: int) -> int:
    """Per cent, and 100 only when all is done."""
    return min(100, part * 100 // whole) if whole else 100


def format_short_count(number: float) -> str:
    """1234567 → 1.2M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size * 0.9995:
            return f"{number / size:.1f}{letter}" if number < size * 99.95 else f"{number / size:.0f}{letter}"
    return f"{number:.0f}"


def format_short_number(value: float) -> str:
    """A score or a metric in about five characters."""
    size = abs(value)
    if size >= 100_000:
        return f"{value:.2e}"
    return f"{value:.3f}" if size < 10 else f"{value:.2f}" if size < 100 else f"{value:.1f}"


def format_rate(per_second: float | None, noun: str = "") -> str:
    if per_second is None:
        return "–"
    if per_second >= 1 or not per_second:
        amount = f"{per_second:.1f}" if per_second < 100 else format_short_count(per_second)
        return f"{amount}{noun}/s"
    return f"{per_second * 60:.1f}{noun}/min"


def format_clock(seconds: float) -> str:
    """72 → 1:12, 4000 → 1:06:40, two days → 2d 03:00."""
    whole = int(seconds)
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 24:
        return f"{hours // 24}d {hours % 24:02}:{minute:02}"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def format_duration(seconds: float) -> str:
    if seconds < 0.00005:
        return "<0.1 ms" if seconds > 0 else "0 s"
    if seconds < 0.0995:
        return f"{seconds * 1000:.1f} ms" if seconds < 0.00995 else f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def format_dollars(usd: float | None) -> str:
    """$12.50, $0.2500, $0.000125: two digits from a dollar on, four below, six below a tenth of a cent."""
    if usd is None:
        return "?"
    size = abs(usd)
    if 0 < size < 0.000001:
        return "<$0.000001"
    digits = 2 if size == 0 or size >= 0.99995 else 4 if size >= 0.001 else 6
    return f"{'-' if usd < 0 else ''}${size:,.{digits}f}"


def format_day(at: float | None, never: str = "never") -> str:
    return never if at is None else time.strftime("%Y-%m-%d", time.localtime(at))


def format_moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def format_counts(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in values.items())


def format_pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def format_number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}"


def format_interval(estimate: MeanEstimate) -> str:
    """Where the mean plausibly lies; empty while there is no interval."""
    interval = estimate.interval
    if interval is None:
        return ""
    bounds = f"{format_short_number(interval.low)} … {format_short_number(interval.high)}"
    return f"{bounds} ({interval.level * 100:g}%, {interval.kind})"


def describe_phase(phase: str) -> str:
    """The phase in which a rollout failed, in plain words."""
    return PHASES.get(phase, f"during {phase}")
