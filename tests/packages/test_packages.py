"""Every way to name an environment, and what is known about the one that was found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import proctor
from proctor.contracts import EnvironmentProtocol
from proctor.errors import ConfigError, UnknownNameError
from proctor.packages.loading import find_environment, load, package_defaults, provenance

pytestmark = pytest.mark.usefixtures("home")

SOURCE = """
from proctor import SingleTurnEnv, Rubric

def load_environment(word="{word}", **others):
    return SingleTurnEnv([{{"question": word}}], rubric=Rubric())
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def source(word: str) -> str:
    return SOURCE.format(word=word)


def asked(environment: EnvironmentProtocol) -> str:
    """What the first task asks."""
    return str(next(iter(environment.tasks())).prompt[0]["content"])


def word_of(env_id: str, env_dir: str = "./environments") -> str:
    return asked(load(find_environment(env_id, env_dir), {}))


# Where environments are


@pytest.mark.parametrize("named", ["envs/greeting.py", "./envs/greeting.py", "{home}/envs/greeting.py"])
def test_a_path_to_a_file(home: Path, named: str) -> None:
    write(home / "envs/greeting.py", source("from a file"))

    found = find_environment(named.format(home=home))

    assert (found.env_id, found.module) == ("greeting", "greeting")
    assert asked(load(found, {})) == "from a file"


def test_a_file_may_import_its_neighbors(home: Path) -> None:
    write(home / "envs/words.py", "WORD = 'from the neighbor'")
    write(home / "envs/greeting.py", "import words\n" + source("x").replace('"x"', "words.WORD"))

    assert word_of("envs/greeting.py") == "from the neighbor"


def test_a_file_whose_name_is_no_identifier(home: Path) -> None:
    write(home / "my-env.v2.py", source("dashes and dots"))

    assert word_of("./my-env.v2.py") == "dashes and dots"


@pytest.mark.parametrize("file", ["my_env.py", "my_env/__init__.py", "src/my_env/__init__.py", "__init__.py"])
def test_a_folder_in_environments(home: Path, file: str) -> None:
    write(home / "environments/my_env" / file, source(file))

    assert word_of("my-env") == file
    assert find_environment("my-env").env_id == "my-env"
    assert find_environment("owner/my-env").module == "my_env"


def test_a_folder_elsewhere(home: Path) -> None:
    write(home / "elsewhere/my_env/my_env.py", source("elsewhere"))

    assert word_of("my-env", env_dir="elsewhere") == "elsewhere"
    assert word_of("./elsewhere/my_env") == "elsewhere"


def test_the_folder_one_stands_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home / "environments/my_env/my_env.py", source("here"))
    monkeypatch.chdir(home / "environments/my_env")

    found = find_environment(".")

    assert (found.env_id, found.module) == ("my_env", "my_env")
    assert asked(load(found, {})) == "here"


def test_an_installed_package(home: Path) -> None:
    write(home / "site/installed_env/__init__.py", source("installed"))
    sys.path.insert(0, str(home / "site"))

    assert word_of("installed-env") == "installed"


def test_a_name_that_a_plugin_registered() -> None:
    assert word_of("echo") == "say 0"
    assert find_environment("echo").registered


def test_a_local_folder_wins_over_a_package_and_over_a_plugin(home: Path) -> None:
    write(home / "site/my_env/__init__.py", source("installed"))
    sys.path.insert(0, str(home / "site"))
    assert word_of("my-env") == "installed"
    write(home / "environments/my_env/my_env.py", source("local"))
    write(home / "environments/echo/echo.py", source("my own echo"))

    assert word_of("my-env") == "local"
    assert word_of("echo") == "my own echo"


def test_arguments_reach_the_environment() -> None:
    environment = load(find_environment("echo"), {"tasks": 3})

    assert len(list(environment.tasks())) == 3


def test_an_unknown_name_is_told_the_nearest_ones(home: Path) -> None:
    (home / "environments/alphabet_sort").mkdir(parents=True)

    with pytest.raises(UnknownNameError, match=r"neither installed .*did you mean 'alphabet_sort'"):
        find_environment("alphabet-sortt")
    with pytest.raises(UnknownNameError, match=r"; known: echo, alphabet_sort\."):
        find_environment("xyzzy")


def test_an_environment_written_for_verifiers_is_told_what_to_import(home: Path) -> None:
    write(home / "my_env.py", "import verifiers as vf")

    with pytest.raises(ConfigError, match="try `import proctor as vf`"):
        load(find_environment("./my_env.py"), {})


def test_finding_imports_nothing(home: Path) -> None:
    write(home / "environments/my_env/my_env.py", "raise RuntimeError('imported')")

    found = find_environment("my-env")

    with pytest.raises(ConfigError, match="Importing my_env failed: RuntimeError: imported"):
        load(found, {})


# Defaults and provenance


@pytest.mark.parametrize("where", ["environments/my_env", "environments/my_env/src/.."])
def test_defaults_stand_beside_the_environment(home: Path, where: str) -> None:
    write(home / "environments/my_env/src/my_env/__init__.py", source("x"))
    write(home / where / "pyproject.toml", "[tool.proctor.eval]\nnum_examples = 9")

    assert package_defaults(find_environment("my-env")) == (
        {"num_examples": 9},
        "[tool.proctor.eval] of my_env/pyproject.toml",
    )


def test_defaults_of_a_file_and_of_an_installed_package(home: Path) -> None:
    write(home / "envs/pyproject.toml", "[tool.verifiers.eval]\nnum_examples = 3")
    write(home / "envs/greeting.py", source("x"))
    write(home / "site/installed_env/__init__.py", source("x"))
    write(home / "site/installed_env/pyproject.toml", "[tool.proctor.eval]\nnum_examples = 4")
    sys.path.insert(0, str(home / "site"))

    assert package_defaults(find_environment("envs/greeting.py"))[0] == {"num_examples": 3}
    assert package_defaults(find_environment("installed-env"))[0] == {"num_examples": 4}
    assert package_defaults(find_environment("echo")) == ({}, "")


def test_a_package_without_a_table_has_no_defaults(home: Path) -> None:
    write(home / "environments/my_env/my_env.py", source("x"))
    write(home / "environments/my_env/pyproject.toml", "[project]\nname = 'my-env'")

    assert package_defaults(find_environment("my-env")) == ({}, "")


def content_hash(env_id: str) -> str:
    found = find_environment(env_id)
    told = provenance(found, load(found, {}))["content_hash"]
    assert isinstance(told, str)
    return told


def test_the_content_hash_changes_with_the_source_and_with_nothing_else(home: Path) -> None:
    folder = home / "environments/my_env"
    write(folder / "my_env.py", source("x"))
    write(folder / "helpers.py", "A = 1")
    first = content_hash("my-env")

    write(folder / "outputs/evals/run/script.py", "junk")
    write(folder / ".venv/lib/site.py", "junk")
    write(folder / "README.md", "words")
    assert content_hash("my-env") == first

    write(folder / "helpers.py", "A = 2")
    assert content_hash("my-env") != first


def test_provenance_names_version_and_class() -> None:
    found = find_environment("echo")

    told = provenance(found, load(found, {}))

    assert told["version"] == proctor.__version__
    assert len(told["content_hash"]) == 16
    assert told["class"] == "proctor.env.multi_turn.SingleTurnEnv"
