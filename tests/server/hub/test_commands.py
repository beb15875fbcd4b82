"""The hub commands of `proctor env` as a user types them, against a real server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.cli.app import run as run_proctor
from proctor.packages.scaffold import plan, write
from proctor.server.people.tokens import make_token
from tests.conftest import Ran
from tests.server.hub.packages import made, push
from tests.server.serving import Api, Served

ROOT = Path(__file__).parents[3]
As = Callable[..., Ran]
"""Runs `proctor env …` as one user."""


@pytest.fixture
def as_user(
    served: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[[Api], As]:
    """The command line within this process, which saves the time of starting one for every command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PROCTOR_API_URL", served.url)

    def commands(api: Api) -> As:
        def run(*words: str) -> Ran:
            monkeypatch.setenv("PROCTOR_API_KEY", api.token)
            capsys.readouterr()
            with pytest.raises(SystemExit) as left:
                run_proctor(["env", *words])
            shown = capsys.readouterr()
            return Ran(int(left.value.code or 0), shown.out, shown.err, tmp_path)

        return run

    return commands


@pytest.fixture
def api(served: Served) -> Api:
    return served.user("ada")


@pytest.fixture
def ada(as_user: Callable[[Api], As], api: Api) -> As:
    return as_user(api)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """./environments/my_env, as `proctor env init` writes it."""
    scaffold = plan("my-env", base=tmp_path / "environments")
    write(scaffold)
    return scaffold.folder


def test_an_environment_is_pushed_listed_shown_and_pulled(ada: As, folder: Path, tmp_path: Path) -> None:
    pushed = ada("push", "my-env")
    assert pushed.code == 0, pushed.stderr
    assert pushed.stdout.startswith("Pushed ada/my-env 0.1.0 (private, 4 files, content ")
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "my_env.py",
        "pyproject.toml",
        "tests",
    ]

    assert ada("list", "--hub").stdout.splitlines()[1].split()[:4] == [
        "ada/my-env",
        "0.1.0",
        "private",
        "pending",
    ]
    assert "ada/my-env 0.1.0" in ada("info", "ada/my-env").stdout
    assert ada("versions", "ada/my-env").stdout.splitlines()[1].startswith("0.1.0  ")
    assert "tests/" in ada("inspect", "ada/my-env").stdout
    assert ada("inspect", "ada/my-env@0.1.0", "my_env.py").stdout == (folder / "my_env.py").read_text()

    pulled = ada("pull", "ada/my-env", "-t", "copy")
    assert pulled.stdout == "Wrote 4 files of ada/my-env 0.1.0 to copy.\n"
    assert (tmp_path / "copy/my_env.py").read_text() == (folder / "my_env.py").read_text()
    again = ada("pull", "ada/my-env", "-t", "copy")
    assert (again.code, "already exists" in again.stderr) == (2, True)
    assert not list(tmp_path.glob(".proctor-pull-*"))


def test_every_answer_is_one_json_object_too(ada: As, folder: Path) -> None:
    for words in (
        ("push", "my-env"),
        ("list", "--hub"),
        ("info", "ada/my-env"),
        ("versions", "ada/my-env"),
        ("inspect", "ada/my-env"),
        ("pull", "ada/my-env"),
        ("share", "ada/my-env"),
        ("visibility", "ada/my-env", "public"),
        ("delete", "ada/my-env", "--yes"),
    ):
        done = ada(*words, "--json")
        assert done.code == 0, (words, done.stderr)
        assert isinstance(json.loads(done.stdout), dict)


def test_the_same_again_fails_unless_it_may_be_skipped(ada: As, folder: Path) -> None:
    ada("push", "my-env")

    again, skipped = ada("push", "my-env"), ada("push", "my-env", "--skip-existing")
    (folder / "my_env.py").write_text("changed = True\n")
    changed = ada("push", "my-env", "--skip-existing")

    assert (again.code, skipped.code, changed.code) == (1, 0, 1)
    assert "nothing was pushed" in again.stderr
    assert "raise the version" in changed.stderr


def test_auto_bump_changes_the_version_and_nothing_else(ada: As, folder: Path) -> None:
    file = folder / "pyproject.toml"
    others = '\n[tool.ruff]\ntarget-version = "py311"\n\n[tool.mypy]\npython_version = "0.1.0"\n'
    file.write_text(file.read_text() + others)
    before = file.read_text()
    assert ada("push", "my-env", "--auto-bump").code == 0
    assert file.read_text() == before  # it was not taken

    (folder / "my_env.py").write_text((folder / "my_env.py").read_text() + "\n# better\n")
    raised = ada("push", "my-env", "--auto-bump")

    assert "Raised the version in pyproject.toml from 0.1.0 to 0.1.1." in raised.stdout
    assert file.read_text() == before.replace('version = "0.1.0"', 'version = "0.1.1"', 1)
    assert ada("push", "my-env", "--auto-bump", "--skip-existing").code == 0  # nothing new, nothing raised
    assert 'version = "0.1.1"' in file.read_text()


def test_a_push_that_fails_leaves_the_version_as_it_was(
    ada: As, as_user: Callable[[Api], As], served: Served, folder: Path
) -> None:
    before = (folder / "pyproject.toml").read_text()

    refused = as_user(served.user("bob"))("push", "my-env", "--team", "ada", "--auto-bump")

    assert refused.code == 1
    assert "You cannot push to 'ada'" in refused.stderr
    assert (folder / "pyproject.toml").read_text() == before


def test_what_should_not_travel_stays_here(ada: As, folder: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.key\n")
    (folder / ".gitignore").write_text("notes/\n!keep.key\n")
    for name in (".env", "secret.key", "keep.key", "notes/a.txt", "outputs/x.json", "data/b.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    (folder / "link.txt").symlink_to("/etc/hostname")

    ada("push", "my-env")

    listed = json.loads(ada("pull", "ada/my-env", "-t", "copy", "--json").stdout)["files"]
    assert set(listed) == {
        ".gitignore",
        "README.md",
        "data/b.txt",
        "keep.key",
        "my_env.py",
        "pyproject.toml",
        "tests/test_my_env.py",
    }


def test_a_wheel_that_cannot_be_built_is_told_with_its_last_lines(ada: As, folder: Path) -> None:
    file = folder / "pyproject.toml"
    file.write_text(file.read_text().replace('only-include = ["my_env.py"]', 'packages = ["nowhere"]'))
    file.write_text(file.read_text().replace("readme = ", "readme = 3 #"))

    done = ada("push", "my-env")

    assert done.code == 1
    assert "The wheel could not be built" in done.stderr
    assert "  " in done.stderr.splitlines()[0]


def test_what_is_no_package_is_refused_with_exit_2(ada: As, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()

    assert ada("push", "./bare").code == 2
    assert "`proctor env init` creates one" in ada("push", "./bare").stderr
    assert "No environment 'nothing' here" in ada("push", "nothing").stderr
    assert "is not an environment on a hub" in ada("versions", "my-env").stderr


def test_waiting_shows_how_the_check_went(ada: As, served: Served, folder: Path) -> None:
    token = served.platform.database.write_now(
        lambda connection: make_token(connection, kind="host", user=None, scopes=[], expires_at=None)
    )
    host = Api(served.url, token.secret, host_key="k" * 64)
    result = {
        "passed": False,
        "message": "It cannot be loaded.",
        "seconds": 0.1,
        "log": "ValueError: no data",
    }
    done = threading.Event()

    def check() -> None:
        while not done.wait(0.05):
            answer = host("POST", "/hosts/checks/claims", {})
            if answer.status == 200:
                host.ok("POST", f"/hosts/checks/{answer.body['version_id']}", result)
                return

    worker = threading.Thread(target=check)
    worker.start()
    try:
        pushed = ada("push", "my-env", "--wait")
    finally:
        done.set()
        worker.join()

    assert pushed.code == 1
    assert "Check: failed. It cannot be loaded.\n  ValueError: no data" in pushed.stdout


def test_others_see_what_is_shared_with_them(
    ada: As, as_user: Callable[[Api], As], served: Served, folder: Path
) -> None:
    bob = as_user(served.user("bob"))
    ada("push", "my-env")
    assert bob("info", "ada/my-env").code == 2
    assert bob("pull", "ada/my-env").code == 2

    assert ada("share", "ada/my-env", "bob", "--role", "read").stdout.splitlines()[1] == "bob   read"
    assert bob("list", "--owner", "ada").stdout.splitlines()[1].startswith("ada/my-env")
    assert bob("fork", "ada/my-env").stdout == "bob/my-env is a copy of ada/my-env@0.1.0.\n"

    ada("share", "ada/my-env", "bob", "--remove")
    assert bob("info", "ada/my-env").code == 2
    assert bob("info", "bob/my-env").code == 0


def test_nothing_is_deleted_without_a_yes(ada: As, folder: Path) -> None:
    ada("push", "my-env")

    assert ada("delete", "ada/my-env@0.1.0").code == 2
    assert ada("delete", "ada/my-env@0.1.0", "--yes").stdout == "Deleted ada/my-env@0.1.0.\n"
    assert "(no versions)" in ada("info", "ada/my-env").stdout


def test_who_is_not_logged_in_is_told_how(proctor: Callable[..., Ran], tmp_path: Path) -> None:
    done = proctor("env", "versions", "ada/my-env", environ={"XDG_CONFIG_HOME": str(tmp_path)})

    assert (done.code, "proctor login" in done.stderr) == (2, True)


def test_the_commands_of_the_page_work_in_their_order(
    ada: As, api: Api, served: Served, tmp_path: Path
) -> None:
    served.user("bob")
    api.post("/teams", {"name": "lab"})
    page = (ROOT / "docs/hub.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = [line.split()[2:] for block in blocks for line in block.splitlines()]

    codes = {" ".join(words): ada(*words).code for words in lines}

    assert len(lines) == 18
    assert set(codes.values()) == {0}, codes


def test_a_requirement_names_the_one_file_that_can_be_meant(ada: As, api: Api, tmp_path: Path) -> None:
    push(api, made(tmp_path / "made", name="own-thing"), visibility="public")
    line = ada("requirement", "ada/own-thing").stdout.strip()
    project = tomllib.loads(ada("requirement", "ada/own-thing", "--uv").stdout)
    other = made(tmp_path / "other", name="own-thing", version="999.0")
    (tmp_path / "other" / other.wheel_name).write_bytes(other.wheel)
    words = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(tmp_path / "site")]
    environ = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": str(tmp_path / "other")}

    done = subprocess.run(
        [*words, line], env=environ, capture_output=True, text=True, timeout=100, check=False
    )

    assert (tmp_path / "site/own_thing-0.1.0.dist-info").is_dir(), done.stderr
    assert project["tool"]["uv"]["sources"] == {"own-thing": {"index": "ada"}}
    assert project["tool"]["uv"]["index"] == [
        {"name": "ada", "url": f"{api.url}/simple/ada/", "explicit": True}
    ]


def test_a_private_environment_is_installed_with_the_token_of_the_context(
    ada: As, api: Api, tmp_path: Path
) -> None:
    push(api, made(tmp_path / "made", name="own-thing"))
    target = {"PIP_TARGET": str(tmp_path / "site"), "PIP_NO_CACHE_DIR": "1"}
    words = [sys.executable, "-m", "proctor", "env", "install", "ada/own-thing"]
    environ = {**os.environ, **target, "PROCTOR_API_KEY": api.token, "PROCTOR_API_URL": api.url}

    done = subprocess.run(
        words, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )

    assert (tmp_path / "site/own_thing.py").is_file(), done.stderr
    assert api.token not in done.stdout + done.stderr


def test_each_change_of_tasks_without_a_package_is_the_next_version(ada: As, tmp_path: Path) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words/env.py").write_text('"""Says "no"."""\n\ntasks = []\n')
    first = ada("push", "words", "--name", "my-words")
    assert first.stdout.startswith("Pushed ada/my-words 0.1.0 (private, 2 files"), first.stderr
    assert "pyproject.toml" in ada("inspect", "ada/my-words").stdout
    assert ada("list", "--search", "Says").stdout.count("ada/my-words") == 1
    again = ada("push", "words/env.py", "--name", "my-words")
    assert (again.code, "already has exactly this" in again.stderr) == (1, True)

    (tmp_path / "words/env.py").write_text('"""Says yes."""\n\ntasks = []\n')

    assert ada("push", "words", "--name", "my-words").stdout.startswith("Pushed ada/my-words 0.1.1")
    assert sorted(path.name for path in (tmp_path / "words").iterdir()) == ["env.py"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("push", "nothing.py"), "No environment 'nothing.py' here"),
        (("push", "empty"), "empty has no pyproject.toml"),
        (("push", "loads.py"), "loads.py has a load_environment()"),
        (("push", "my-env", "--name", "other"), "takes its name from its pyproject.toml"),
    ],
)
def test_what_cannot_be_pushed_is_explained(
    ada: As, folder: Path, tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    assert folder.is_dir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "loads.py").write_text("def load_environment():\n    pass\n")
    refused = ada(*words)
    assert (refused.code, why in refused.stderr) == (2, True), refused.stderr
