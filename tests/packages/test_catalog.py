"""What `env list` knows without importing anything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from proctor.packages.catalog import CatalogEntry, list_environments
from proctor.packages.loading import find_environment, package_defaults, version_of
from proctor.packages.source import read_source

LOADER = '"""Greets.\n\nAt length."""\nraise RuntimeError("imported")\ndef load_environment(): ...\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site")])
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def install(
    name: str, files: dict[str, str], metadata: dict[str, str] | None = None, needs: str = "proctor"
) -> None:
    """An installed package, as pip leaves it."""
    site = Path("site")
    folder = site / f"{name}-1.2.dist-info"
    content = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\nRequires-Dist: {needs}>=0.1\n"
    write(folder / "METADATA", content)
    for path, text in files.items():
        write(site / path, text)
    for path, text in (metadata or {}).items():
        write(folder / path, text)
    write(folder / "RECORD", "".join(f"{path},,\n" for path in files))


def entry(name: str) -> CatalogEntry | None:
    return next((entry for entry in list_environments() if entry.name == name), None)


def test_local_registered_and_installed_environments_are_found_and_not_imported(here: Path) -> None:
    write(here / "environments/my_env/my_env.py", LOADER)
    write(here / "environments/my_env/pyproject.toml", "[project]\nname = 'my-env'\nversion = '0.3'")
    install("other_env", {"other_env.py": LOADER})

    mine, other, echo = entry("my-env"), entry("other_env"), entry("echo")

    assert mine is not None
    assert (mine.kind, mine.version, mine.description) == ("local", "0.3", "Greets.")
    assert other is not None
    assert (other.kind, other.version, other.description) == ("installed", "1.2", "Greets.")
    assert echo is not None
    assert echo.kind == "registered"
    assert echo.description.startswith("The echo environment")


def test_only_packages_that_are_written_with_a_kit_and_load_count(here: Path) -> None:
    install(
        "for_verifiers",
        {"for_verifiers/__init__.py": "from .env import load_environment", "for_verifiers/env.py": LOADER},
        needs="verifiers",
    )
    install("a_library", {"a_library.py": LOADER}, needs="numpy")
    install("a_listener", {"a_listener.py": "x = 1"})

    assert entry("for_verifiers") is not None
    assert entry("a_library") is None
    assert entry("a_listener") is None


def test_a_linked_package_is_found_where_it_lies(here: Path) -> None:
    write(here / "elsewhere/linked_env/linked_env.py", LOADER)
    origin = f'{{"url": "file://{here}/elsewhere/linked_env", "dir_info": {{"editable": true}}}}'
    install("linked-env", {}, {"direct_url.json": origin})

    found = entry("linked-env")

    assert found is not None
    assert found.path == here / "elsewhere/linked_env/linked_env.py"


def test_a_local_environment_hides_the_installed_one_of_its_name(here: Path) -> None:
    install("my_env", {"my_env.py": LOADER})
    write(here / "environments/my_env/my_env.py", LOADER)

    assert [each.kind for each in list_environments() if each.module == "my_env"] == ["local"]


def test_what_cannot_be_run_is_listed_with_the_reason(here: Path) -> None:
    write(here / "environments/broken/broken.py", "def load_environment(:\n")
    write(here / "environments/lacking/lacking.py", "x = 1\n")
    (here / "environments/notes").mkdir()

    broken, lacking = entry("broken"), entry("lacking")

    assert broken is not None
    assert broken.problem.startswith("broken.py:1: SyntaxError")
    assert lacking is not None
    assert lacking.problem == "lacking.py has no load_environment()"
    assert entry("notes") is None


def test_settings_travel_with_a_wheel_and_those_of_a_neighbor_do_not_count(here: Path) -> None:
    carried = "[tool.proctor.eval]\nnum_examples = 7"
    install("my_env", {"my_env.py": LOADER}, {"extra_metadata/pyproject.toml": carried})
    write(here / "site/pyproject.toml", "[project]\nname = 'another'\n[tool.proctor.eval]\nnum_examples = 99")

    found = find_environment("my-env")

    assert package_defaults(found) == ({"num_examples": 7}, "[tool.proctor.eval] of pyproject.toml of my-env")
    assert version_of(found) == "1.2"


def test_arguments_are_read_as_they_are_written(here: Path) -> None:
    source = read_source(
        write(here / "env.py", "def load_environment(a, b: int = 3, *, c: 'str | None' = None, **more): ...")
    )

    assert [(each.name, each.type, each.default) for each in source.arguments] == [
        ("a", None, None),
        ("b", "int", "3"),
        ("c", "'str | None'", "None"),
    ]
    assert source.takes_any


def test_two_files_that_pass_the_loader_to_each_other_are_read_once(here: Path) -> None:
    write(here / "pack/other.py", "from .mine import load_environment")
    file = write(here / "pack/mine.py", "from .other import load_environment")

    assert read_source(file).loader == "imported"
