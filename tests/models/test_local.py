"""The embedded model as it is asked."""

from __future__ import annotations

import asyncio

import pytest

from proctor.config.endpoints import Endpoint
from proctor.models.local import Local


def test_however_many_ask_at_once_it_is_started_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []

    class Counted:
        base_url, model = "http://127.0.0.1:9/v1", "small"

        @classmethod
        def start(cls, *_: object, **__: object) -> Counted:
            started.append(cls)
            return cls()

        def close(self) -> None: ...

    monkeypatch.setattr("proctor.models.local.EmbeddedServer", Counted)

    async def ask() -> None:
        model = Local(Endpoint(model="local", client_type="local"))
        await asyncio.gather(*(model.check() for _ in range(8)))
        await model.close()

    asyncio.run(ask())
    assert len(started) == 1
