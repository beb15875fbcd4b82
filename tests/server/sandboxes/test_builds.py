"""Virtual environments for served environments are built beside the server: it answers whatever they do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.runner.indexes import package_index
from tests.server.hub.packages import made, push, write_wheel
from tests.server.serving import Api, Served
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("sandboxes")

SECONDS = 60.0
PLANT = """import os; os.path.isdir('/workspace') and (os.path.lexists('/workspace/frozen.txt') or \
os.mkfifo('/workspace/frozen.txt'))\n"""


@pytest.fixture(autouse=True)
def no_other_index(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


def builders() -> list[int]:
    """Processes of this server that build."""
    mine = f"PPid:\t{os.getpid()}\n"
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            if b"proctor.runner.build" in words and mine in (folder / "status").read_text():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def is_healthy(served: Served) -> bool:
    return served.nobody("GET", "/health").status == 200


def session_of(api: Api) -> str:
    return str(api.post("/runtime/sessions", {"environment": "ada/greet"})["id"])


def test_a_package_that_plants_a_pipe_does_not_stop_the_server(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    ada = served.user("ada")
    files = {"greet.py": b"raise SystemExit('out of pears')", "greet.pth": PLANT.encode()}
    package = made(tmp_path, wheel=lambda path: write_wheel(path, "greet", "0.1.0", files))
    assert push(ada, package).status == 201

    where = f"/runtime/sessions/{session_of(ada)}"
    shown = wait_for(lambda: (told := ada.get(where))["status"] != "starting" and told)

    assert "out of pears" in shown["message"]
    assert is_healthy(served)


def test_while_a_build_hangs_the_server_answers_and_ending_the_session_ends_the_build(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = served.user("ada")
    assert push(ada, made(tmp_path / "made", needs="helper")).status == 201

    with package_index(tmp_path, silent=True) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        session = session_of(ada)
        wait_for(lambda: index.asked)
        assert builders()
        assert is_healthy(served)
        ada.ok("DELETE", f"/runtime/sessions/{session}")
        wait_for(lambda: not builders())

    assert is_healthy(served)


def test_why_an_environment_cannot_be_installed_is_said_to_who_asked_for_it(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    ada = served.user("ada")
    assert push(ada, made(tmp_path, needs="nobody-has-this")).status == 201

    where = f"/runtime/sessions/{session_of(ada)}"
    shown = wait_for(lambda: (told := ada.get(where))["status"] != "starting" and told)

    assert shown["status"] == "failed"
    assert "no wheel of nobody-has-this" in shown["message"]
