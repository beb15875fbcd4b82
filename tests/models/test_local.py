"""The embedded model as it is asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from proctor.config.endpoints import Endpoint
from proctor.contracts import Request
from proctor.errors import RequestRefusedError
from proctor.models.local import Local, with_tool_choice
from proctor.trace import ToolSpec


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


LOOK = ToolSpec("look", "Look around.", {"type": "object", "properties": {}})


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "look"}}])
def test_a_choice_of_tool_that_it_cannot_honor_is_refused(choice: Any) -> None:
    with pytest.raises(RequestRefusedError, match="cannot be made to call a tool") as caught:
        with_tool_choice(Request([], [LOOK], {"tool_choice": choice}))

    assert caught.value.status == 400


def test_no_tool_is_offered_where_none_may_be_called() -> None:
    asked = with_tool_choice(Request([], [LOOK], {"tool_choice": "none", "temperature": 0}))

    assert (asked.tools, asked.sampling) == ((), {"temperature": 0})
    auto = Request([], [LOOK], {"tool_choice": "auto"})
    assert with_tool_choice(auto) is auto
