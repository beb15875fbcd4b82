"""A server whose models are at a provider on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.gateway.provider import KEY, REGISTRY, Provider, providing
from tests.server.serving import Served, serving, settings_in

KEYS = ("OPENAI_API_KEY", "PRIME_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as one:
        yield one


@pytest.fixture
def registry(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*KEYS, "GOOGLE_API_KEY", "TEST_MISSING_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEST_PROVIDER_KEY", KEY)
    written = tmp_path / "endpoints.toml"
    written.write_text(REGISTRY.format(url=provider.url))
    return written


@pytest.fixture
def served(tmp_path: Path, registry: Path) -> Iterator[Served]:
    with serving(settings_in(tmp_path, endpoints=registry)) as server:
        yield server


@pytest.fixture
def served_anywhere(tmp_path: Path, registry: Path, database_url: str) -> Iterator[Served]:
    """The same on either kind of database."""
    with serving(settings_in(tmp_path, endpoints=registry, database=database_url)) as server:
        yield server
