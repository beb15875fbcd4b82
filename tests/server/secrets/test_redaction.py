"""No secret survives in what a run says, however it is spelled there; and JSON stays JSON."""

from __future__ import annotations

import base64
import json
import time
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.server.secrets.redaction import Redactor

letters = st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")
values = st.text(letters, min_size=6, max_size=40).filter(
    lambda value: len(value.strip()) >= 6 and value.strip() not in "[secret KEY]"
)
texts = st.text(letters, max_size=30)


def spellings(value: str, before: str, after: str) -> dict[str, str]:
    """Texts that hold the value, each in another way."""
    content = value.encode()
    found = {
        "plain": value,
        "json": json.dumps(value),
        "unicode json": json.dumps(value, ensure_ascii=False),
        "json in json": json.dumps(json.dumps({"key": value})),
        "path": quote(value),
        "query": quote(value, safe=""),
        "form": quote_plus(value),
    }
    for padding in (b"", b"u", b"u:"):
        found[f"base64 after {len(padding)}"] = base64.b64encode(padding + content + b"!").decode()
        found[f"url base64 after {len(padding)}"] = base64.urlsafe_b64encode(padding + content).decode()
    return {how: before + text + after for how, text in found.items()}


def read_back(text: str, value: str) -> bool:
    """Whether somebody who tries every spelling finds the value."""
    if value in text:
        return True
    return any(
        told in text
        for how, told in spellings(value, "", "").items()
        if not how.startswith(("url base64", "base64"))
    )


@given(values, texts, texts)
def test_a_value_is_found_in_every_spelling(value: str, before: str, after: str) -> None:
    redactor = Redactor({"KEY": value})
    for how, text in spellings(value, before, after).items():
        redacted = redactor.text(text)
        assert "[secret KEY]" in redacted, how
        assert not read_back(redacted.replace("[secret KEY]", "\0"), value), how


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(values, documents, st.booleans())
def test_json_stays_json_without_the_value(value: str, around: Any, is_ascii: bool) -> None:
    row = {"said": f"it is {value}!", value: [value, around], "nested": json.dumps({"key": value})}
    redacted = Redactor({"KEY": value}).json(json.dumps(row, ensure_ascii=is_ascii).encode())
    read = json.loads(redacted)
    assert read["said"].startswith("it is [secret KEY]")
    assert not any(read_back(text.replace("[secret KEY]", "\0"), value) for text in strings_of(read))


def strings_of(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for each in pair for text in strings_of(each)]
    return [text for each in value for text in strings_of(each)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    ("value", "row", "redacted"),
    [
        ("123456", b'{"pin":123456}', {"pin": "[secret KEY]"}),
        ("nnnnnn", rb'{"a":"\nnnnnnn"}', {"a": "\n[secret KEY]"}),
        ('","b":"', b'{"a":"","b":""}', {"a": "", "b": ""}),
        ("a/b/c/d", rb'{"a":"a\/b\/c\/d"}', {"a": "[secret KEY]"}),
    ],
)
def test_a_value_that_looks_like_json_breaks_none(value: str, row: bytes, redacted: Any) -> None:
    assert json.loads(Redactor({"KEY": value}).json(row)) == redacted


def test_what_holds_no_secret_is_left_as_it_is_to_the_byte() -> None:
    row = b'{ "a" : 1.50, "b": "\\u00e9" }'
    assert Redactor({"KEY": "hunter2"}).json(row) is row


def test_each_secret_is_named_and_the_longer_of_two_wins() -> None:
    redactor = Redactor({"SHORT": "abcdef", "LONG": "abcdefghij"})
    assert redactor.text("abcdefghij abcdef") == "[secret LONG] [secret SHORT]"


def test_a_value_that_is_too_short_to_tell_from_words_is_left() -> None:
    assert Redactor({"KEY": "true"}).text("it is true") == "it is true"


def test_a_key_of_several_lines_is_found_line_by_line() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n"
    said = [Redactor({"PEM": key}).text(line) for line in key.splitlines()]
    assert said == ["[secret PEM]"] * 4


def test_without_secrets_everything_passes() -> None:
    assert Redactor({}).text("hello") == "hello"
    assert Redactor({}).json(b'"hello"') == b'"hello"'


def test_a_long_row_costs_little() -> None:
    redactor = Redactor({f"KEY_{number}": f"sk-{number}-{'x7Qp' * 10}" for number in range(10)})
    row = msgspec.json.encode(
        {"text": "The quick brown fox jumps over the lazy dog, 42 times in 17 days. " * 15_000}
    )
    redactor.json(row)
    took = []
    for _ in range(5):
        started = time.process_time()
        redactor.json(row)
        took.append(time.process_time() - started)
    assert min(took) < 0.05  # 5 ms on an idle machine
