"""Packages that attack the host while they are fetched and installed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import threading
from io import BytesIO
from pathlib import Path

import pytest

from proctor.errors import InstallError
from proctor.isolation.untrusted_tree import occupied_bytes
from proctor.runner import confined_pip
from proctor.runner import venvs as venvs_module
from proctor.runner.fetching import FetchRules
from proctor.runner.locks import pin_of, read_lock
from proctor.runner.venvs import DOWNLOADS, Venv, Venvs
from tests.runner.indexes import PASSWORD, PackageIndex, package_index
from tests.runner.wheels import make_wheel

pytestmark = pytest.mark.usefixtures("sandboxes")

BUILD_SECONDS = 60.0


@pytest.fixture(autouse=True)
def no_other_index(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    return folder


@pytest.fixture
def find_links(packages: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All packages there are, in a folder."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(packages))
    return packages


def use(index: PackageIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", index.url)


def build(venvs: Venvs, wheel: Path, lock: str | None = None, said: list[str] | None = None) -> Venv:
    lines = [] if said is None else said
    return asyncio.run(venvs.ready(wheel, wheel.name, lock, lines.append))


def env_needing(folder: Path, *requires: str) -> Path:
    return make_wheel(folder, "tiny_env", {"tiny_env.py": ""}, requires=requires)


# What the host writes


PLANT = (
    "import os, sys; os.path.isdir('/workspace') and (os.path.lexists('/workspace/frozen.txt') or {plant}); "
    "print('{line}')\n"
)
LINE = 'id==__import__("os").system("true")'


@pytest.mark.parametrize(
    "plant", ["os.symlink('{victim}', '/workspace/frozen.txt')", "os.mkfifo('/workspace/frozen.txt')"]
)
def test_what_a_package_plants_while_it_is_installed_leads_the_host_nowhere(
    plant: str, find_links: Path, tmp_path: Path
) -> None:
    """A `.pth` file runs whenever the virtual environment's Python starts."""
    victim = tmp_path / "victim.py"
    code = PLANT.format(plant=plant.format(victim=victim), line=LINE)
    wheel = make_wheel(tmp_path, "tiny_env", {"tiny_env.py": "", "tiny_env.pth": code})
    built: list[Venv] = []
    building = threading.Thread(target=lambda: built.append(build(Venvs(tmp_path / "c"), wheel)), daemon=True)

    building.start()
    building.join(BUILD_SECONDS)

    assert built, "the host waits for a file that a package planted"
    assert not os.path.lexists(victim)
    assert built[0].lock == ""


@pytest.mark.parametrize(
    "line",
    [
        LINE,
        "--index-url http://127.0.0.1:9/simple",
        "-r /etc/passwd",
        "helper @ file:///etc",
        "helper",
        "helper==1.0; import os",
        "helper==1.0 --global-option=x",
        "helper==1.0\r--index-url=x",
        "helper==1.0 --hash=sha256:" + "0" * 64 + "  # ../../x.whl",
        "./helper.whl",
    ],
)
def test_a_lock_has_names_and_versions_and_nothing_else(line: str, find_links: Path, tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="only name==version can stand"):
        build(Venvs(tmp_path / "cache"), env_needing(tmp_path), f"{line}\n")


@pytest.mark.parametrize(
    "version", ["1.0", "2!1.0rc1", "1.0.post1", "1.0.dev3", "2.0+cu118", "2024.01.05", "1.0-1"]
)
def test_a_lock_takes_every_version_there_is(version: str) -> None:
    assert [pin.version for pin in read_lock(f"helper=={version}\n")] == [version]


# What is fetched


BACKEND = """
import os, socket
def prepare_metadata_for_build_wheel(*_): attack()
def build_wheel(*_): attack()
def get_requires_for_build_wheel(*_): attack()
def attack():
    open({marker!r}, "w").write(os.environ.get("PIP_INDEX_URL", "no index"))
    raise SystemExit("SEEN " + os.environ.get("PIP_INDEX_URL", "no index"))
attack()
"""


def make_source(folder: Path, name: str, marker: Path) -> Path:
    """A source distribution that is built by code of its own."""
    project = f'[build-system]\nrequires = []\nbuild-backend = "{name}"\nbackend-path = ["."]\n'
    files = {"pyproject.toml": project, f"{name}.py": BACKEND.format(marker=str(marker))}
    files["PKG-INFO"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    archive = folder / f"{name}-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{path}")
            entry.size = len(text.encode())
            tar.addfile(entry, BytesIO(text.encode()))
    return archive


@pytest.mark.parametrize(
    "reference",
    [
        "evil @ {address}/files/evil-1.0.tar.gz",
        "evil @ {address}/files/evil-1.0-py3-none-any.whl",
        "evil @ file://{folder}/evil-1.0.tar.gz",
        "evil @ git+{address}/evil.git",
        "evil @ {address}/metadata/token ; python_version > '3'",
    ],
)
@pytest.mark.parametrize("is_direct_dependency", [True, False], ids=["its own", "of a dependency"])
def test_a_direct_reference_is_refused_and_never_followed(
    reference: str,
    is_direct_dependency: bool,
    packages: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marker = tmp_path / "executed"
    make_source(packages, "evil", marker)
    make_wheel(packages, "evil", {"evil.py": ""})
    said: list[str] = []
    with package_index(packages) as elsewhere, package_index(packages, private=True) as index:
        use(index, monkeypatch)
        requirement = reference.format(address=elsewhere.address, folder=packages)
        make_wheel(packages, "helper", {"helper.py": ""}, requires=[requirement])
        wheel = env_needing(tmp_path, requirement if is_direct_dependency else "helper")

        with pytest.raises(InstallError, match="is a direct reference") as raised:
            build(Venvs(tmp_path / "cache"), wheel, said=said)

    assert "require 'evil' by name and version" in str(raised.value)
    assert elsewhere.asked == []
    assert not marker.exists()
    assert PASSWORD not in "\n".join([*said, *raised.value.last_lines, str(raised.value)])


def test_wheels_of_a_host_that_the_operator_allowed_may_be_named_by_address(
    packages: Path, find_links: Path, tmp_path: Path
) -> None:
    make_wheel(packages, "helper", {"helper.py": ""})
    make_source(packages, "evil", tmp_path / "executed")
    rules = FetchRules(direct_hosts=("127.0.0.1",))
    with package_index(packages) as elsewhere:
        wheel = env_needing(tmp_path, f"helper @ {elsewhere.address}/files/helper-1.0-py3-none-any.whl")
        venv = build(Venvs(tmp_path / "cache", rules=rules), wheel)
        again = build(Venvs(tmp_path / "other", rules=rules), wheel, venv.lock)
        source = env_needing(tmp_path, f"evil @ {elsewhere.address}/files/evil-1.0.tar.gz")
        with pytest.raises(InstallError, match="is a direct reference"):
            build(Venvs(tmp_path / "cache", rules=rules), source)

    assert [pin.requirement for pin in read_lock(venv.lock)] == ["helper==1.0"]
    assert again.lock == venv.lock
    assert not (tmp_path / "executed").exists()


def test_a_source_distribution_is_refused_and_never_built(find_links: Path, tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    make_source(find_links, "hostile", marker)

    with pytest.raises(InstallError, match=r"no wheel of hostile .* publish a wheel of it") as raised:
        build(Venvs(tmp_path / "cache"), env_needing(tmp_path, "hostile"))

    assert not marker.exists()
    assert "SEEN" not in "\n".join(raised.value.last_lines)


def test_an_operators_leave_to_build_does_not_reach_the_fetch(
    find_links: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_BINARY", ":all:")
    make_source(find_links, "hostile", tmp_path / "executed")

    with pytest.raises(InstallError):
        build(Venvs(tmp_path / "cache"), env_needing(tmp_path, "hostile"))

    assert not (tmp_path / "executed").exists()


def test_pip_outside_the_walls_can_start_no_process(tmp_path: Path) -> None:
    """Even if it were made to build something."""
    marker = tmp_path / "executed"
    source = make_source(tmp_path, "hostile", marker)
    rules = {"memory_bytes": 2**32, "file_bytes": 2**30, "cpu_seconds": 60, "direct_hosts": [], "path": []}
    words = ["install", "--dry-run", "--no-index", "--no-build-isolation", str(source)]

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", *command, *words],
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )

    confined = run(str(confined_pip.__file__), json.dumps({**rules, "parent": os.getpid()}))
    assert confined.returncode != 0
    assert "no process may be started" in confined.stdout + confined.stderr
    assert not marker.exists()
    run("-m", "pip")
    assert marker.exists()  # what does not work elsewhere proves nothing


def test_requirements_that_look_like_options_are_not_taken_for_them(find_links: Path, tmp_path: Path) -> None:
    for requirement in ("--index-url http://127.0.0.1:9", "-r /etc/passwd", "helper --pre", "../helper"):
        with pytest.raises(InstallError):
            build(Venvs(tmp_path / "cache"), env_needing(tmp_path, requirement))


def test_an_index_with_a_password_is_used_and_the_password_seen_by_nobody(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(packages, "helper", {"helper.py": ""}, requires=["further"])
    make_wheel(packages, "further", {"further.py": ""})
    said: list[str] = []
    with package_index(packages, private=True) as index:
        use(index, monkeypatch)
        venv = build(Venvs(tmp_path / "cache"), env_needing(tmp_path, "helper"), said=said)
        with pytest.raises(InstallError) as raised:
            build(Venvs(tmp_path / "cache"), env_needing(tmp_path, "absent"), said=said)

    assert [pin.requirement for pin in read_lock(venv.lock)] == ["further==1.0", "helper==1.0"]
    assert PASSWORD not in "\n".join([*said, *raised.value.last_lines, str(raised.value)])
    kept = [file for file in venv.python.parents[1].rglob("*") if file.is_file()]
    assert not [file for file in kept if PASSWORD.encode() in file.read_bytes()]


# Who never answers, and who never stops


def test_an_index_that_never_answers_is_given_up(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with package_index(packages, silent=True) as index:
        use(index, monkeypatch)
        with pytest.raises(InstallError, match="took longer than 4 seconds; does the index answer"):
            build(Venvs(tmp_path / "cache", rules=FetchRules(seconds=4)), env_needing(tmp_path, "helper"))


def test_a_download_without_end_is_given_up(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(packages, "helper", {"helper.py": ""})
    with package_index(packages, endless=True) as index:
        use(index, monkeypatch)
        with pytest.raises(InstallError):
            build(Venvs(tmp_path / "cache", rules=FetchRules(disk_mb=30)), env_needing(tmp_path, "helper"))
    assert not list((tmp_path / "cache").glob("*/fetched"))


def test_a_wheel_that_changed_on_the_index_is_not_installed_from_a_lock(
    find_links: Path, tmp_path: Path
) -> None:
    make_wheel(find_links, "helper", {"helper.py": "first = 1"})
    wheel = env_needing(tmp_path, "helper")
    lock = build(Venvs(tmp_path / "one"), wheel).lock

    make_wheel(find_links, "helper", {"helper.py": "second = 2"})

    with pytest.raises(InstallError, match="is not the file it was when this version was checked"):
        build(Venvs(tmp_path / "two"), wheel, lock)


def test_a_lock_without_hashes_still_holds_its_versions(find_links: Path, tmp_path: Path) -> None:
    old = make_wheel(find_links, "helper", {"helper.py": ""}, version="1.0")
    make_wheel(find_links, "helper", {"helper.py": ""}, version="2.0")

    venv = build(Venvs(tmp_path / "one"), env_needing(tmp_path, "helper"), "helper==1.0\n")

    assert read_lock(venv.lock) == [pin_of(old.name, hashlib.sha256(old.read_bytes()).hexdigest())]


def test_packages_that_cannot_be_installed_do_not_fill_the_disk_with_what_was_fetched(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(venvs_module, "DOWNLOADS_MB", 1)
    monkeypatch.setenv("PIP_TRUSTED_HOST", "127.0.0.1")  # pip keeps nothing of what is not encrypted else
    make_wheel(packages, "large", {"large.txt": os.urandom(2**20).hex()}, requires=["missing"])
    cache = tmp_path / "cache"
    with package_index(packages) as index:
        use(index, monkeypatch)
        with pytest.raises(InstallError, match="missing"):
            build(Venvs(cache), env_needing(tmp_path, "large"))

    assert "/files/large-1.0-py3-none-any.whl" in index.asked
    assert occupied_bytes([cache / DOWNLOADS], 2**30) <= 2**20
