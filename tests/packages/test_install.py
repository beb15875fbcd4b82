"""What each word of `env install` means, and what it leaves in a virtual environment."""

from __future__ import annotations

import functools
import http.server
import os
import site
import subprocess
import sys
import threading
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import proctor
from proctor.errors import ConfigError
from proctor.packages.install import Hub, commands_for, isolate_environ, resolve_target
from proctor.packages.scaffold import plan, write

SOURCE = Path(proctor.__file__).parent.parent
ENVIRONMENT = '"""Says hello."""\ndef load_environment(): ...\n'

Ran = subprocess.CompletedProcess[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))  # which has no uv
    return tmp_path


@pytest.fixture
def fresh(here: Path) -> Callable[..., Ran]:
    """Proctor in a new virtual environment that borrows the packages of this one."""
    venv.create(here / "venv", with_pip=False)
    borrowed = os.pathsep.join([str(SOURCE), *site.getsitepackages()])

    def run(*words: str, **environ: str) -> Ran:
        return subprocess.run(
            [here / "venv/bin/python", "-m", "proctor", *words],
            env={**os.environ, "PATH": str(here / "venv/bin"), "PYTHONPATH": borrowed, **environ},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


def wheel(folder: Path, name: str, version: str, needs: str = "") -> Path:
    """A wheel with one module in it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    requires = f"Requires-Dist: {needs}\n" if needs else ""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}.py", ENVIRONMENT)
        file.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"
        )
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return path


@pytest.fixture
def hub(here: Path) -> Iterator[str]:
    """The address of a hub that keeps ada's `hub_env` in two versions."""
    folder = here / "hub/simple/ada/hub-env"
    for version in ("0.1", "0.2"):
        wheel(folder, "hub_env", version, needs="proctor")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(here / "hub"))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


# What a word means


def words(what: str) -> tuple[str, ...]:
    return resolve_target(what, "./environments", None).words


def test_a_name_means_the_local_folder_where_there_is_one(here: Path) -> None:
    write(plan("my-env"))
    folder = str(here / "environments/my_env")

    assert words("my-env") == ("-e", folder)
    assert words("./environments/my_env") == ("-e", folder)
    assert words("environments/my_env") == ("-e", folder)
    assert words("other-env") == ("other-env",)
    assert words("other[extra]==1.2") == ("other[extra]==1.2",)
    assert words("git+https://git.invalid/o/r.git@v1") == ("git+https://git.invalid/o/r.git@v1",)


def test_a_wheel_is_taken_as_it_is(here: Path) -> None:
    path = wheel(here / "dist", "some_env", "1.0")

    target = resolve_target("dist/some_env-1.0-py3-none-any.whl", "./environments", None)

    assert (target.words, target.name) == ((str(path),), "some-env")


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("./nowhere", "There is no environment at './nowhere'"),
        ("dist/nothing-1.0-py3-none-any.whl", "There is no file"),
        ("--index-url=x", "is not an environment"),
        ("bare", "has no pyproject.toml.*proctor eval run bare"),
        ("owner/name", "none is configured; log in with `proctor login`, set PROCTOR_HUB_URL"),
    ],
)
def test_what_cannot_be_installed_is_refused_in_a_sentence(what: str, reason: str, here: Path) -> None:
    (here / "environments/bare").mkdir(parents=True)

    with pytest.raises(ConfigError, match=reason):
        words(what)


def test_a_hub_is_asked_for_the_environment_and_the_usual_index_for_the_rest() -> None:
    target = resolve_target("ada/hub-env@0.1", "./environments", Hub("http://127.0.0.1:9/"))

    first, second = commands_for([target])

    assert first.words[-2:] == ("--no-deps", "hub-env==0.1")
    assert first.variables["PIP_INDEX_URL"] == "http://127.0.0.1:9/simple/ada/"
    assert first.sealed
    assert second.words[-1] == "hub-env==0.1"
    assert not second.variables
    assert not second.sealed


def test_a_token_is_never_on_the_command_line() -> None:
    target = resolve_target("ada/hub-env", "./environments", Hub("https://hub.invalid", "proctor_a_b"))

    first, second = commands_for([target])

    assert "proctor_a_b" not in " ".join((*first.words, *second.words))
    assert first.variables["PIP_INDEX_URL"] == "https://__token__:proctor_a_b@hub.invalid/simple/ada/"
    assert first.variables["UV_INDEX_URL"] == first.variables["PIP_INDEX_URL"]
    assert "PIP_TRUSTED_HOST" not in first.variables


def test_nothing_configured_on_the_machine_can_answer_in_the_hubs_place() -> None:
    kept = isolate_environ(
        {"PIP_EXTRA_INDEX_URL": "x", "UV_INDEX": "x", "PIP_FIND_LINKS": "x", "PIP_CERT": "c"}
    )

    assert kept == {"PIP_CERT": "c", "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}


def test_uv_is_used_where_it_is(here: Path) -> None:
    uv = here / "bin/uv"
    uv.parent.mkdir()
    uv.touch(mode=0o755)

    [command] = commands_for([resolve_target("x==1", "./environments", None)], upgrade=True)

    assert command.words == (str(uv), "pip", "install", "--python", sys.executable, "--upgrade", "x==1")


# What is really installed


def test_a_local_environment_is_linked_and_runs_from_anywhere(fresh: Callable[..., Ran]) -> None:
    write(plan("my-env"))

    installed = fresh("env", "install", "my-env")
    listed = fresh("env", "list", "--path", "./nowhere")
    ran = fresh("eval", "run", "my-env", "-m", "scripted", "-p", "./nowhere", "--json")

    assert installed.returncode == 0, installed.stderr
    assert "Installed my-env 0.1.0 (linked to environments/my_env)." in installed.stdout
    assert "proctor eval run my-env" in installed.stdout
    assert "my-env  0.1.0    installed" in listed.stdout
    assert '"rollouts_per_task": 2' in ran.stdout, ran.stderr  # a default of its package


def test_an_environment_of_a_hub_in_the_version_asked_for(
    fresh: Callable[..., Ran], hub: str, here: Path
) -> None:
    pinned = fresh("env", "install", "ada/hub-env@0.1", PROCTOR_HUB_URL=hub)
    newest = fresh("env", "install", "-U", "ada/hub-env", PROCTOR_HUB_URL=hub)
    missing = fresh("env", "install", "bob/hub-env@0.1", PROCTOR_HUB_URL=hub)

    assert "Installed hub-env 0.1." in pinned.stdout, pinned.stderr
    assert "Installed hub-env 0.2." in newest.stdout, newest.stderr
    assert missing.returncode == 1


def test_the_last_words_of_an_installer_that_fails_are_shown(fresh: Callable[..., Ran], here: Path) -> None:
    broken = here / "some_env-1.0-py3-none-any.whl"
    broken.write_text("no wheel at all")

    done = fresh("env", "install", str(broken))

    assert done.returncode == 1
    assert "The installer ended with exit code 1; its last lines are above." in done.stderr
    assert "some_env" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_dry_run_installs_nothing(fresh: Callable[..., Ran], here: Path) -> None:
    path = wheel(here / "dist", "some_env", "1.0")

    done = fresh("env", "install", "--dry-run", str(path))

    assert done.stdout.endswith(f"install --disable-pip-version-check {path}\n")
    assert list((here / "venv/lib").glob("*/site-packages/some_env*")) == []
