"""What a host finds out about versions that were pushed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor.api.hub import CheckAssignment, CheckResult
from proctor.client.connection import ServerConnection
from proctor.client.contexts import Context
from proctor.errors import InstallError
from proctor.isolation.limits import RunLimits
from proctor.runner.checks import INSPECTION_FILE, Checker, check_one, read_inspection
from proctor.runner.inspection import EnvironmentInspection
from proctor.runner.venvs import Venvs
from proctor.runner.version_details import LONGEST_EXAMPLE
from proctor.runner.wheels import fetch_wheel
from tests.runner.wheels import make_wheel

pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.xdist_group("checks")]

ANYTHING = "import os\nexec(os.environ['SOURCE'])\n"
GOOD = """
import proctor as pr

print("a line of its own")

def load_environment():
    return pr.SingleTurnEnv(dataset=[{"question": "abcd", "answer": "1"}] * 3, rubric=pr.Rubric())
"""


class Wants(ThreadingHTTPServer):
    """Stands for a server's routes for hosts: one check to give away, and what was answered."""

    orders: list[CheckAssignment]
    wheels: dict[str, bytes]
    results: list[CheckResult]


class Handler(BaseHTTPRequestHandler):
    server: Wants

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path.endswith("/hosts/checks/claims"):
            assert json.loads(body)["host"] == "here"
            assignment = self.server.orders.pop() if self.server.orders else None
            self.answer(
                204 if assignment is None else 201, msgspec.json.encode(assignment) if assignment else b""
            )
        else:
            self.server.results.append(msgspec.json.decode(body, type=CheckResult))
            self.answer(204, b"")

    def do_GET(self) -> None:
        self.answer(200, self.server.wheels[self.path.rpartition("/")[2]])

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def wanting() -> Iterator[Wants]:
    with Wants(("127.0.0.1", 0), Handler) as server:
        server.orders, server.wheels, server.results = [], {}, []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one wheel is installed once: what its module does comes by a variable."""
    return tmp_path_factory.mktemp("shared")


def checked(source: str, shared: Path, secrets: Sequence[str] = (), **changes: Any) -> CheckResult:
    wheel = make_wheel(shared, "tiny_env", {"tiny_env.py": ANYTHING}, requires=["proctor"])
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assignment = CheckAssignment(
        version_id="v1",
        environment="ada/tiny-env",
        version="1.0",
        module="tiny_env",
        wheel_name=wheel.name,
        wheel_sha256=sha256,
        variables={"SOURCE": source},
        secrets=list(secrets),
        lease_seconds=60,
    )

    async def main(url: str) -> tuple[bool, bool]:
        venvs = Venvs(shared / "venvs")
        checker = Checker(host="here", venvs=venvs, wheels=shared / "wheels", **changes)
        async with ServerConnection(Context(url=url, token="t")) as server:
            return await check_one(server, checker), await check_one(server, checker)

    with wanting() as server:
        server.orders.append(assignment)
        server.wheels[sha256] = wheel.read_bytes()
        assert asyncio.run(main(f"http://127.0.0.1:{server.server_port}")) == (True, False)
        (result,) = server.results
        return result


def test_a_good_version_passes_with_the_number_of_its_tasks(shared: Path) -> None:
    result = checked(GOOD, shared)
    assert (result.passed, result.tasks) == (True, 3), result
    assert result.message == "It installs, loads and yields 3 tasks."
    assert result.facts["mean_prompt_characters"] == 4.0
    assert "a line of its own" in result.log
    assert result.lock == ""


DESCRIBED = """
import proctor as pr

def exact(completion, answer): return 1.0

async def look_up(word: str) -> str:
    '''Looks a word up.'''
    return word

def load_environment(level: int = 3, *, language: "str | None" = None, **more):
    return pr.ToolEnv(
        dataset=[{"question": "Say it: " + "x" * 20_000, "answer": "1"}],
        rubric=pr.Rubric(funcs=[exact], weights=[float("nan")]),
        tools=[look_up],
        max_turns=4,
    )
"""


def test_what_a_version_takes_and_offers_is_reported_and_cut_to_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "plain_env.py").write_text(DESCRIBED)
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "plain-env"\nversion = "1"\n[tool.proctor.eval]\nnum_examples = 7\n'
    )
    code = "import msgspec, sys; from proctor.runner.inspection import inspect_module as look; "
    code += "sys.stdout.buffer.write(msgspec.json.encode(look('plain_env')))"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True, timeout=120
    )
    inspection = msgspec.json.decode(ran.stdout, type=EnvironmentInspection)
    assert inspection.problem == "", inspection
    details = inspection.details
    assert details is not None
    assert [(each.name, each.type, each.default) for each in details.arguments] == [
        ("level", "int", "3"),
        ("language", "'str | None'", "None"),
    ]
    assert (details.takes_any, dict(details.defaults), details.max_turns) == (True, {"num_examples": 7}, 4)
    assert [(each.name, each.weight) for each in details.rewards] == [("exact", None)]
    assert [(each.name, each.description) for each in details.tools] == [("look_up", "Looks a word up.")]
    assert details.example is not None
    assert details.example.is_cut
    assert len(details.example.prompt[-1].text) == LONGEST_EXAMPLE


def test_arguments_are_known_of_a_version_that_needs_a_secret_or_cannot_be_described(tmp_path: Path) -> None:
    (tmp_path / "shy_env.py").write_text(
        "import os\ndef load_environment(level: int = 3): return os.environ['JUDGE_KEY']\n"
    )
    (tmp_path / "odd_env.py").write_text(
        GOOD.replace("load_environment()", "load_environment(level: int = 3)")
        .replace(
            "    return pr.Single", "    class Odd(pr.SingleTurnEnv):\n        tools = 5\n    return Odd("
        )
        .replace("Odd(TurnEnv(", "Odd(")
    )
    code = "import msgspec, sys; from proctor.runner.inspection import inspect_module as look; "
    code += "sys.stdout = sys.stderr; out = [look(n, ['JUDGE_KEY']) for n in ('shy_env', 'odd_env')]; "
    code += "sys.__stdout__.buffer.write(msgspec.json.encode(out))"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True, timeout=120
    )
    shy, odd = msgspec.json.decode(ran.stdout, type=list[EnvironmentInspection])
    assert (shy.needs_secret, odd.problem) == ("JUDGE_KEY", "")
    for inspection in (shy, odd):
        assert inspection.details is not None
        assert [each.name for each in inspection.details.arguments] == ["level"]
    assert b"AttributeError" in ran.stderr  # why it could not be described is in the check's log


def test_of_a_version_that_prints_without_end_the_beginning_and_the_end_are_kept(shared: Path) -> None:
    result = checked("for number in range(9_000): print('line', number)\n" + GOOD, shared)
    assert result.passed, result
    lines = result.log.splitlines()
    assert len(lines) == 2_201
    assert "line 0" in lines
    assert "lines omitted" in lines[200]
    assert "a line of its own" in lines


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def load_environment(): raise KeyError('absent')", "absent"),
        ("import no_such_module", "no_such_module"),
        (GOOD.replace("* 3", "* 0"), "no tasks"),
        ("import os; os._exit(3)", "exit code 3"),
        (
            "held = bytearray(900 << 20)",
            "the memory limit",
        ),
    ],
    ids=["raises", "misses", "empty", "dies", "eats"],
)
def test_a_version_that_cannot_be_played_fails_with_the_reason(
    source: str, message: str, shared: Path
) -> None:
    result = checked(source, shared, limits=RunLimits(memory_mb=256))
    assert not result.passed
    assert message in result.message


@pytest.mark.parametrize(
    "source",
    [
        "def load_environment(): return os.environ['JUDGE_KEY']",
        "key = os.environ['JUDGE_KEY']",
        "if not os.getenv('JUDGE_KEY'): raise ValueError('set JUDGE_KEY to ask the judge')",
    ],
    ids=["when it loads", "when it is imported", "in its own words"],
)
def test_a_version_that_loads_only_with_a_declared_secret_says_so(source: str, shared: Path) -> None:
    result = checked(source, shared, secrets=["OTHER_KEY", "JUDGE_KEY"])
    assert (result.passed, result.needs_secret) == (False, "JUDGE_KEY")
    assert "needs the secret JUDGE_KEY to load, and checks run without secrets" in result.message


def test_a_version_that_misses_what_it_does_not_declare_has_failed(shared: Path) -> None:
    result = checked("key = os.environ['JUDGE_KEY_2']", shared, secrets=["JUDGE_KEY"])
    assert (result.passed, result.needs_secret) == (False, "")


def test_a_version_that_loads_forever_is_given_up(shared: Path) -> None:
    result = checked("import time; time.sleep(100)", shared, seconds=2.0)
    assert not result.passed
    assert "took longer than 2 seconds" in result.message


def test_tasks_that_are_read_one_by_one_are_counted(shared: Path) -> None:
    source = """
import proctor as pr

class Endless(pr.SingleTurnEnv):
    def tasks(self):
        return iter(list(super().tasks()) * 100_005)

def load_environment():
    return Endless(dataset=[{"question": "abcd", "answer": "1"}], rubric=pr.Rubric())
"""
    result = checked(source, shared)
    assert (result.passed, result.tasks) == (True, 100_000), result
    assert "more than 100,000 tasks" in result.message


def test_a_wheel_that_arrives_damaged_is_not_used(tmp_path: Path) -> None:
    async def main(url: str) -> None:
        async with ServerConnection(Context(url=url, token="t")) as server:
            await fetch_wheel(server, "0" * 64, tmp_path / "wheels")

    with wanting() as server:
        server.wheels["0" * 64] = b"something else"
        with pytest.raises(InstallError, match="damaged"):
            asyncio.run(main(f"http://127.0.0.1:{server.server_port}"))
    assert not list((tmp_path / "wheels").iterdir())


def test_what_an_environment_puts_in_the_place_of_the_finding_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('{"problem": "treasure"}')
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / INSPECTION_FILE).symlink_to(tmp_path / "secret")
    assert asyncio.run(read_inspection(folder)) is None
    (folder / INSPECTION_FILE).unlink()
    (folder / INSPECTION_FILE).write_text('{"problem": "its own"}')
    assert asyncio.run(read_inspection(folder)) == EnvironmentInspection(problem="its own")
