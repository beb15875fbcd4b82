"""What users read names no folder of a host, and no address that is valid only in a sandbox."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from proctor.api.common import DATABASE_AWAY
from proctor.errors import ModelError, OverloadedError
from proctor.evaluation.evaluate import Control
from proctor.runner.host_paths import hide_folder
from proctor.runner.inside import __main__ as inside
from proctor.runner.inside.__main__ import HostedModel
from proctor.server.secrets.redaction import Redactor

KEY = "0a" * 32
RAISED = f'File "/srv/proctor/host/venvs/{KEY}/venv/lib/python3.12/site-packages/maze.py", line 3'
GATEWAY = "http://127.0.0.1:41234/v1"


class FailingModel:
    """A model whose calls end as they were told to."""

    name = "parrot"

    def __init__(self, *endings: Any) -> None:
        self.endings = list(endings)

    async def complete(self, _: Any) -> Any:
        ending = self.endings.pop(0)
        if isinstance(ending, Exception):
            raise ending
        return ending


def complete(*endings: Any) -> Any:
    model: Any = FailingModel(*endings)
    return asyncio.run(HostedModel(model, Control(), GATEWAY).complete(None))  # type: ignore[arg-type]


def test_a_traceback_names_the_virtual_environment_but_not_where_the_host_keeps_it() -> None:
    shown = 'File "venv/lib/python3.12/site-packages/maze.py", line 3'
    redactor = Redactor({})

    assert redactor.text(RAISED) == shown
    assert json.loads(redactor.json(json.dumps({"error": RAISED}).encode())) == {"error": shown}
    assert hide_folder(RAISED, Path("/srv/proctor/host")) == shown
    assert redactor.text("ls venvs/ /home/venvs/x") == "ls venvs/ /home/venvs/x"


def test_a_host_names_its_files_relative_to_its_folder() -> None:
    said = "ERROR: /srv/proctor/host/wheels/maze-1.0.whl is not a wheel"
    assert hide_folder(said, Path("/srv/proctor/host")) == "ERROR: wheels/maze-1.0.whl is not a wheel"


def test_an_error_of_the_model_names_the_server_and_not_an_address_inside_the_sandbox() -> None:
    with pytest.raises(ModelError) as told:
        complete(OverloadedError(f"{GATEWAY} answered 503: overloaded", status=503))
    assert str(told.value) == "The server answered 503: overloaded"
    assert told.value.status == 503


def test_a_call_waits_for_a_server_whose_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inside, "PAUSE_SECONDS", 0.0)
    away = OverloadedError(f"{GATEWAY} answered 503: {DATABASE_AWAY}", status=503)
    assert complete(away, away, "an answer") == "an answer"
