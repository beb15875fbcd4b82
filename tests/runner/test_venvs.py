"""Virtual environments of pushed wheels: built once, kept apart from the host, used again."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from proctor.errors import InstallError
from proctor.runner import venvs as venvs_module
from proctor.runner.installer import parse_settings
from proctor.runner.lockfile import read_lock
from proctor.runner.venvs import Venv, Venvs, cache_key, hash_wheel
from tests.runner.playing import Played, disable_bubblewrap, played, spec_of
from tests.runner.wheels import make_wheel

pytestmark = pytest.mark.usefixtures("sandboxes")


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all packages there are: nothing is fetched from anywhere."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def ready(venvs: Venvs, wheel: Path, lock: str | None = None, said: list[str] | None = None) -> Venv:
    lines = [] if said is None else said
    return asyncio.run(venvs.ready(wheel, wheel.name, lock, lines.append))


def pinned(venv: Venv) -> list[str]:
    return [pin.requirement for pin in read_lock(venv.lock)]


def inside(venv: Venv, code: str, folder: Path) -> Played:
    spec = spec_of(code, folder, python=str(venv.python), paths=venv.paths, variables=venv.variables)
    return asyncio.run(played(spec))


def test_a_wheel_is_installed_once_with_what_it_needs_beside_proctor(tmp_path: Path, index: Path) -> None:
    make_wheel(index, "helper", {"helper.py": "WORD = 'old'"}, version="1.0")
    make_wheel(index, "helper", {"helper.py": "WORD = 'new'"}, version="2.0")
    wheel = make_wheel(
        tmp_path, "tiny_env", {"tiny_env.py": "import helper, proctor"}, requires=["helper", "proctor"]
    )

    venvs, said = Venvs(tmp_path / "cache"), list[str]()
    venv = ready(venvs, wheel, said=said)
    told = inside(
        venv, "import tiny_env; print(tiny_env.helper.WORD, tiny_env.proctor.__name__)", tmp_path / "r"
    )

    assert told.lines == ["new proctor"]
    assert pinned(venv) == ["helper==2.0"]
    assert said[0] == f"Installing {wheel.name}."

    said.clear()
    for file in index.rglob("*.whl"):
        file.unlink()
    again, locked = ready(venvs, wheel, said=said), ready(venvs, wheel, venv.lock, said)

    assert again == locked == venv
    assert said == []


def test_a_lock_is_kept_to_although_there_is_something_newer(tmp_path: Path, index: Path) -> None:
    make_wheel(index, "helper", {"helper.py": ""}, version="1.0")
    make_wheel(index, "helper", {"helper.py": ""}, version="2.0")
    wheel = make_wheel(tmp_path, "tiny_env", {"tiny_env.py": ""}, requires=["helper"])

    venv = ready(Venvs(tmp_path / "cache"), wheel, "helper==1.0\n")

    assert pinned(venv) == ["helper==1.0"]


def test_an_environments_own_versions_win_over_the_hosts(tmp_path: Path, index: Path) -> None:
    make_wheel(index, "msgspec", {"msgspec.py": "WHOSE = 'the environment'"}, version="99.0")
    wheel = make_wheel(tmp_path, "tiny_env", {"tiny_env.py": ""}, requires=["msgspec==99.0"])

    venv = ready(Venvs(tmp_path / "cache"), wheel)

    assert inside(venv, "import msgspec; print(msgspec.WHOSE)", tmp_path / "run").lines == ["the environment"]


def test_two_who_want_the_same_build_it_once(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "tiny_env", {"tiny_env.py": ""})
    said: list[str] = []

    async def both() -> list[Venv]:
        each = [Venvs(tmp_path / "cache").ready(wheel, wheel.name, None, said.append) for _ in range(2)]
        return await asyncio.gather(*each)

    first, second = asyncio.run(both())
    assert first == second
    assert said.count(f"Installing {wheel.name}.") == 1


def test_what_cannot_be_installed_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "tiny_env", {"tiny_env.py": ""}, requires=["nobody-has-this"])

    with pytest.raises(InstallError, match="nobody-has-this") as raised:
        ready(Venvs(tmp_path / "cache"), wheel)

    assert any("nobody-has-this" in line for line in raised.value.last_lines)
    left = {path.name for path in (tmp_path / "cache").iterdir() if path.is_dir()}
    assert left <= {"downloads"}


def test_half_a_virtual_environment_is_built_anew(tmp_path: Path) -> None:
    wheel, cache = make_wheel(tmp_path, "tiny_env", {"tiny_env.py": ""}), tmp_path / "cache"
    (cache / cache_key(hash_wheel(wheel), None) / "venv" / "bin").mkdir(parents=True)

    venv = ready(Venvs(cache), wheel)

    assert inside(venv, "import tiny_env; print('whole')", tmp_path / "run").lines == ["whole"]


@pytest.mark.parametrize("name", ["../../etc/x-1.0-py3-none-any.whl", "x.whl", "--index-url=http://evil"])
def test_a_name_that_is_none_of_a_wheel_is_refused(name: str, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "tiny_env", {"tiny_env.py": ""})
    with pytest.raises(InstallError, match="not the name of a wheel"):
        asyncio.run(Venvs(tmp_path / "cache").ready(wheel, name, None, print))


def test_the_least_used_are_removed_when_there_is_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(venvs_module, "IN_USE_SECONDS", 100.0)
    cache = tmp_path / "cache"
    old, used = cache / "old", cache / "used"
    for place in (old, used):
        place.mkdir(parents=True)
        (place / "lock.txt").touch()
    os.utime(old, (1, 1))

    new = ready(Venvs(cache, most_mb=0), make_wheel(tmp_path, "tiny_env", {"tiny_env.py": ""}))

    assert [path.exists() for path in (old, used, new.python)] == [False, True, True]


def test_without_walls_it_is_installed_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disable_bubblewrap(monkeypatch)
    wheel = make_wheel(tmp_path, "tiny_env", {"tiny_env.py": "print('here')"})
    venv = ready(Venvs(tmp_path / "cache", allow_no_sandbox=True), wheel)
    assert inside(venv, "import tiny_env", tmp_path / "run").lines == ["here"]


def test_pips_settings_are_understood() -> None:
    told = "\n".join(
        [
            ":env:.find-links='/opt/wheels'",
            "global.extra-index-url='\\nfile:///mirror/a/simple\\nhttps://example.invalid/simple'",
            "global.find-links='/elsewhere'",
            "global.cert='/etc/certs/own.pem'",
            "freeze.timeout='10'",
            "install.target='/home/somebody'",
        ]
    )
    settings = parse_settings(told)
    assert settings == {
        "extra-index-url": "file:///mirror/a/simple https://example.invalid/simple",
        "find-links": "/opt/wheels",
        "cert": "/etc/certs/own.pem",
    }
