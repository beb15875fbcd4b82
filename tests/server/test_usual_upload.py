"""With a login, a user's settings can trace every local run to the server; without one, nothing is sent."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from proctor import EchoEnvironment, Scripted, evaluate
from proctor.cli import app
from proctor.client.contexts import Context, Contexts, write_contexts
from proctor.config.user_settings import read_user_settings
from proctor.errors import ConfigError, FileError
from tests.server.serving import Api, Served


@pytest.fixture
def ada(served: Served) -> Api:
    user = served.user("ada")
    login = Context(url=served.url, token=user.token)
    write_contexts(os.environ, Contexts(current="lab", contexts={"lab": login}))
    return user


def write_settings(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "config" / "proctor"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.toml").write_text(text)


def evaluate_echo() -> None:
    asyncio.run(evaluate(EchoEnvironment("say 1"), Scripted(["say 1"])))


def run_echo(*words: str) -> None:
    command = ["eval", "run", "echo", "-m", "scripted", "-n", "1", "-r", "1", "-A", *words]
    with pytest.raises(SystemExit) as end:
        app.run(command)
    assert end.value.code == 0


def uploaded(user: Api) -> int:
    runs = user.get("/runs")["items"]
    assert all(run["kind"] == "local" and run["progress"]["scored"] == 1 for run in runs)
    return len(runs)


def test_every_local_run_is_uploaded_if_the_settings_say_always(
    ada: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(tmp_path, 'upload = "always"\n')

    evaluate_echo()
    run_echo()
    assert uploaded(ada) == 2

    run_echo("--no-upload")
    monkeypatch.setenv("PROCTOR_UPLOAD", "0")
    evaluate_echo()
    assert uploaded(ada) == 2


def test_a_variable_uploads_every_run_as_well(ada: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate_echo()
    assert uploaded(ada) == 0

    monkeypatch.setenv("PROCTOR_UPLOAD", "1")
    evaluate_echo()
    run_echo()

    assert uploaded(ada) == 2


def test_without_a_login_nothing_leaves_the_machine(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_UPLOAD", "1")

    evaluate_echo()
    run_echo()

    assert served.root.get("/runs")["items"] == []


def test_a_mistake_in_the_settings_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_settings(tmp_path, 'upload = "sometimes"\nuplaod = "always"\n')
    with pytest.raises(FileError) as error:
        read_user_settings(os.environ)
    assert "did you mean 'upload'?" in str(error.value)
    assert '\'upload\' must be "always" or "never"' in str(error.value)

    write_settings(tmp_path, "")
    monkeypatch.setenv("PROCTOR_UPLOAD", "perhaps")
    with pytest.raises(ConfigError, match="PROCTOR_UPLOAD is 'perhaps'; set it to 1 or 0"):
        read_user_settings(os.environ)
