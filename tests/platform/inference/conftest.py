"""A server whose models are at a provider on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.platform.inference.provider import KEY, REGISTRY, Provider, providing
from tests.platform.serving import Served, serving, settings_in

KEYS = ("OPENAI_API_KEY", "PRIME_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as one:
        yield one


@pytest.fixture
def served(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    for name in (*KEYS, "GOOGLE_API_KEY", "TEST_MISSING_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEST_PROVIDER_KEY", KEY)
    registry = tmp_path / "endpoints.toml"
    registry.write_text(REGISTRY.format(url=provider.url))
    with serving(settings_in(tmp_path, endpoints=registry)) as server:
        yield server
