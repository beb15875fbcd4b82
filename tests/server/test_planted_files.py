"""An environment whose first attempt leaves traps in its folder and crashes: the next one plays on unharmed.

Against the server's own host, and against `proctor runner`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.isolation import planting
from tests.server.test_second_host import playing
from tests.server.workplace import Person, Workplace, workplace

pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.xdist_group("attacks")]

TRAP = '''
"""Leaves traps behind at its first attempt, and dies."""

import os, subprocess, sys
from proctor import Rubric, SingleTurnEnv

PLANT = {script!r}
NAMES = ("order.json", "frozen.txt", "lock.txt", "given", "venv")


def load_environment(treasure="", kind=""):
    if kind and not os.path.exists("/workspace/seen"):
        open("/workspace/seen", "w").close()
        wishes = [name + "=" + kind for name in NAMES]
        subprocess.run([sys.executable, "-c", PLANT, treasure, *wishes], cwd="/workspace", check=True)
        os._exit(3)
    rows = [{{"question": "say it", "answer": "x"}}]
    return SingleTurnEnv(rows, rubric=Rubric(lambda completion: 1.0))
'''


@contextmanager
def own_host(tmp_path: Path) -> Iterator[Workplace]:
    with workplace(tmp_path / "w") as place:
        yield place


@contextmanager
def runner(tmp_path: Path) -> Iterator[Workplace]:
    with workplace(tmp_path / "w", "--runs-at-once", "0") as place:
        admin = Person(tmp_path / "admin", place.url)
        admin.ok("login", place.url, stdin=place.token)
        admin.ok("token", "create", "--host", "machine", "-o", "host-token")
        with playing(admin, admin.home / "host-token"):
            yield place


@pytest.mark.parametrize("start", [own_host, runner])
def test_traps_that_an_attempt_leaves_harm_neither_the_next_one_nor_its_host(
    start: Callable[[Path], AbstractContextManager[Workplace]], tmp_path: Path
) -> None:
    treasure, new = tmp_path / "keep" / "treasure", tmp_path / "keep" / "new"
    treasure.parent.mkdir(mode=0o755)
    treasure.write_text("treasure")
    with start(tmp_path) as place:
        ada = place.person("ada")
        ada.write_environment("trap", TRAP.format(script=inspect.getsource(planting)))
        ada.ok("env", "push", "trap")
        hosts = place.hosts()
        for kind, target in (("link", new), ("fifo", treasure)):
            args = f'{{"treasure": "{target}", "kind": "{kind}"}}'
            words = ("eval", "run", "ada/trap", "--hosted", "-m", "parrot", "-n", "1", "-r", "1", "-a", args)
            run = ada.ok(*words, "--json").json["runs"][0]["id"]
            assert ada("eval", "wait", run, "--timeout", "60").code == 0, ada("eval", "logs", run)
        assert place.hosts() == hosts
    assert treasure.read_text() == "treasure"
    assert not new.exists()
