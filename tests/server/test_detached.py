"""A server in the background, and one server per data folder."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.errors import ConfigError
from proctor.server.server import open_server
from tests.ports import free_port
from tests.server.serving import Served, settings_in
from tests.server.workplace import Person, answers, workplace


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path, f"http://127.0.0.1:{free_port()}")
    yield person
    person("server", "stop")


def detach(operator: Person, *words: str) -> list[str]:
    port = operator.url.rpartition(":")[2]
    return ["server", "--detach", "--port", port, "--main-index", "none", "--runs-at-once", "0", *words]


def test_a_detached_server_answers_when_the_command_returns_and_can_be_stopped(operator: Person) -> None:
    said = operator.ok(*detach(operator))

    assert answers(operator.url)
    assert f"proctor login {operator.url} --token-file proctor-data/admin-token" in said.stdout
    assert "proctor-data/server.log" in said.stdout
    token = (operator.home / "proctor-data" / "admin-token").read_text().strip()
    assert token not in (operator.home / "proctor-data" / "server.log").read_text()

    assert operator.ok("server", "stop").stdout == f"Stopped the server at {operator.url}.\n"
    assert not answers(operator.url)
    assert "No server uses" in operator("server", "stop").stderr


def test_a_second_server_on_one_data_folder_is_refused_and_told_of_the_first(operator: Person) -> None:
    operator.ok(*detach(operator))

    for words in (("--detach",), ()):
        second = operator("server", "--port", "0", "--main-index", "none", *words)

        assert second.code == 2
        assert f"The server at {operator.url} (process " in second.stderr
        assert "already uses" in second.stderr
        assert "proctor server stop" in second.stderr
    assert answers(operator.url)


def test_a_detached_server_that_cannot_start_says_why(operator: Person) -> None:
    with socket.create_server(("127.0.0.1", int(operator.url.rpartition(":")[2]))):
        said = operator(*detach(operator))

    assert said.code == 2
    assert said.stderr.startswith("Error: Cannot listen on")


def test_a_data_folder_is_free_again_when_its_server_failed_to_open(tmp_path: Path, served: Served) -> None:
    with pytest.raises(ConfigError, match=rf"process {os.getpid()}\) already uses"):
        open_server(served.platform.settings)

    (tmp_path / "other").mkdir()
    broken = settings_in(tmp_path / "other", database="postgresql://localhost:1/none")
    for _ in range(2):
        with pytest.raises(Exception, match=r"refused|connect"):
            open_server(broken)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="a server without bubblewrap warns of more")
def test_a_run_on_a_server_without_a_host_says_that_nothing_will_play_it(tmp_path: Path) -> None:
    with workplace(tmp_path / "w", "--runs-at-once", "0") as place:
        ada = place.person("ada")
        ada.write_environment()
        ada.ok("env", "push", "sums")

        said = ada.ok("eval", "run", "ada/sums", "--hosted", "-m", "parrot")

        assert "No host that can play runs is connected to this server, so the run waits." in said.stdout
        run_id = said.stdout.split()[0]
        assert "No host that can play runs is connected" in ada.ok("eval", "info", run_id).stdout
        assert "No host that can play runs is connected" in ada.ok("eval", "logs", run_id).stdout
