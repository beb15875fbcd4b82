"""Folders of tasks as packages: listed and loaded where they are installed, packed where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.errors import ConfigError
from proctor.evaluation.hub_source import list_missing
from proctor.evaluation.taskset import Taskset
from proctor.packages import catalog, loading
from proctor.packages.install import resolve_target
from proctor.packages.scaffold import plan, write
from proctor.packages.task_files import Batch
from proctor.packages.task_project import plan_task_project, write_task_project
from proctor.runtimes.hosted import HostedRuntime
from proctor.task import mint_task

ENV = '"""Say a word again."""\nfrom proctor import Environment\n\nenv = Environment("words")\n'
TEMPLATE = "\n\n@env.template()\nasync def repeat(word: str):\n    yield float((yield word) == word)\n"
TASKS = 'from env import repeat\n\ntasks = [repeat(word="pear"), repeat(word="fig")]\n'


def write_tasks(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "env.py").write_text(ENV + TEMPLATE)
    (folder / "tasks.py").write_text(TASKS)
    return folder


def test_an_installed_folder_of_tasks_is_listed_and_loaded_by_its_name(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = home / "site"
    write_tasks(site / "my_words")
    (site / "my_words/pyproject.toml").write_text(
        '[project]\nname = "my-words"\n[tool.proctor.eval]\nnum_examples = 7\n'
    )
    info = site / "my_words-0.3.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: my-words\nVersion: 0.3.0\nRequires-Dist: proctor\n"
    )
    names = ("my_words/env.py", "my_words/tasks.py", "my_words-0.3.0.dist-info/METADATA")
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in names))
    monkeypatch.syspath_prepend(str(site))

    found = loading.find_environment("my-words")

    assert len(list(loading.load(found, {}).tasks())) == 2
    assert loading.package_defaults(found)[0] == {"num_examples": 7}
    assert loading.version_of(found) == "0.3.0"
    assert [file.name for file in loading.source_files(found)] == ["env.py", "tasks.py"]
    (entry,) = [each for each in catalog.list_installed() if each.module == "my_words"]
    assert (entry.name, entry.description) == ("my-words", "Say a word again.")


def test_a_folder_of_tasks_is_installed_as_a_copy_since_it_cannot_be_linked(home: Path) -> None:
    folder = write(plan("my-env", "templates", home / "environments"))[0].parent
    assert resolve_target("my-env", str(home / "environments"), None).words == (str(folder.resolve()),)
    linked = write(plan("other", "single", home / "environments"))[0].parent
    assert resolve_target("other", str(home / "environments"), None).words == ("-e", str(linked.resolve()))


def test_a_file_of_another_name_is_packed_as_the_tasks_with_its_environment(home: Path) -> None:
    folder = write_tasks(home / "project")
    (folder / "tasks.py").rename(folder / "hard_words.py")
    (folder / "diary.txt").write_text("private")
    project = plan_task_project(folder / "hard_words.py")
    assert project is not None
    write_task_project(project, "0.1.0", home / "staged")
    assert project.name == "hard-words"
    assert sorted(path.name for path in (home / "staged").iterdir()) == [
        "env.py",
        "pyproject.toml",
        "tasks.py",
    ]
    assert len(Taskset.from_file(home / "staged")) == 2


def test_a_name_that_cannot_be_a_package_is_refused_before_anything_is_sent(home: Path) -> None:
    with pytest.raises(ConfigError, match="try 'my-words'"):
        plan_task_project(write_tasks(home / "words"), "My Words")


def test_missing_dependencies_are_those_that_apply_everywhere() -> None:
    wanted = ["proctor>=0.1", "Foo_Bar[x]~=2.0", "tomli; python_version < '3.11'", "click"]
    assert list_missing(wanted, {"proctor": "0.1.0", "click": "8.1"}) == ["Foo_Bar"]


def test_tasks_of_a_server_are_played_there_in_the_environment_they_came_from() -> None:
    tasks = [mint_task("words", "repeat", {"word": "pear"})]
    taskset = Taskset._of(Batch(name="words", tasks=tasks, package="ada/words@0.1.0"))
    given = HostedRuntime("http://127.0.0.1:9", token="t")
    chosen = taskset.elsewhere(None, given).provider
    assert isinstance(chosen, HostedRuntime)
    assert (chosen.environment, given.environment) == ("ada/words@0.1.0", None)
