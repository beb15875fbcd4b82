r"""Read numbers as people and models write them: 1,234.5 · −3 · 12 % · 1/2 · \frac{1}{2} · 1.5 × 10^3.

Ambiguous text is not read at all: 1,23 and 1.2.3 are not numbers here. Knows nothing of grading.
"""

from __future__ import annotations

import math
import re

LONGEST = 20_000
"""Characters read, from the end, where answers are."""

_SIMPLER = (
    (re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}"), r"(\1)/(\2)"),
    (re.compile(r"\((-?\d+)\)/\((\d+)\)"), r"\1/\2"),
    (re.compile(r"(?<=\d)\{,\}(?=\d{3})"), ","),
    (re.compile(r"(?<=\d)\\[,;: ](?=\d{3})"), ","),
    (re.compile("(?<=\\d)[\u00a0\u2009\u202f](?=\\d{3})"), ","),
    (re.compile(r"\\%"), "%"),
    (re.compile(r"\\(?:times|cdot)"), "×"),
    (re.compile(r"[$]"), ""),
    (re.compile("[\u2212\u2013](?=[\\d.])"), "-"),
)
_BOXED = re.compile(r"\\boxed\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_POWER = re.compile(r"\s*[×*]\s*10\s*\^\s*\{?\s*([+-]?\d{1,3})\s*\}?")
_TOKEN = re.compile(r"(?<![\w.,/%])[+-]?(?:\d[\d.,/]*|\.\d+)(?:[eE][+-]?\d{1,3}(?![\w]))?")
_PLAIN = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|\.)?(?:[eE][+-]?\d+)?")
_WORDLIKE = re.compile(r"(?:st|nd|rd|th)\b|x|[^\W\d]+\d", re.IGNORECASE)
"""Turns the digits before it into a word: 3rd, 4x4, 1a2. A unit does not: 5kg."""
_PERCENT = re.compile(r"\s*%")


def read_number(text: str) -> float | None:
    """The number that a text consists of, or None."""
    found = _numbers(text)
    return found[0][0] if len(found) == 1 and found[0][1] else None


def numbers_in(text: str) -> list[float]:
    r"""All numbers of a text, in order; if it has a \boxed{…}, only those of the last box."""
    boxes = _BOXED.findall(text[-LONGEST:])
    return [number for number, _ in _numbers(boxes[-1] if boxes else text)]


def _numbers(text: str) -> list[tuple[float, bool]]:
    """Numbers, and whether each is the whole text."""
    text = text[-LONGEST:]
    for pattern, plain in _SIMPLER:
        text = pattern.sub(plain, text)
    text = text.strip()
    found = []
    end = 0
    for token in _TOKEN.finditer(text):
        if token.start() < end:  # the power of ten of the number before
            continue
        written = token[0].rstrip(".,/")
        end = token.start() + len(written)
        if _WORDLIKE.match(text, end):
            continue
        value = _value(written)
        if value is None:
            continue
        if power := _POWER.match(text, end):
            value, end = value * float(f"1e{power[1]}"), power.end()
        if percent := _PERCENT.match(text, end):
            value, end = value / 100.0, percent.end()
        if math.isfinite(value):
            found.append((value, token.start() == 0 and text[end:].strip(" .") == ""))
    return found


def _value(written: str) -> float | None:
    if "/" in written:
        parts = written.split("/")
        above, below = (_value(part) for part in parts) if len(parts) == 2 else (None, None)
        return above / below if above is not None and below else None
    if not written or not _PLAIN.fullmatch(written) or not any(letter.isdigit() for letter in written):
        return None
    return float(written.replace(",", ""))
