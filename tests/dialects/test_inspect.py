"""Files of Inspect's tasks: how they are found, and which task is meant. Inspect itself is not needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.checkup.static import find_static_problems
from proctor.dialects.inspect.dialect import choose_task
from proctor.errors import ConfigError
from proctor.packages.loading import dialect_of, find_environment, import_loader

TWO = '''"""Sums and capitals."""
from inspect_ai import Task, task
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import human_agent

@task
def sums(): ...

@task(name="towns")
def capitals(): ...

def helper(): ...
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "evals.py"
    path.write_text(TWO)
    return path


@pytest.mark.parametrize("decorator", ["@task", "@task(name='x')", "@inspect_ai.task"])
def test_a_file_with_a_task_of_inspect_is_found(tmp_path: Path, decorator: str) -> None:
    file = tmp_path / "one.py"
    file.write_text(f"import inspect_ai\nfrom inspect_ai import task\n{decorator}\ndef one(): ...\n")
    found = find_environment(str(file))
    dialect = dialect_of(found)
    assert dialect is not None
    assert dialect.title == "Inspect"
    assert choose_task(found, [file]) == (file, "one")


def test_a_file_that_only_uses_inspect_is_not_a_task(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text("from inspect_ai import eval\neval('evals.py')\n")
    assert dialect_of(find_environment(str(file))) is None


def test_one_of_several_tasks_is_named_behind_the_file(file: Path) -> None:
    found = find_environment(f"{file}@capitals")
    assert (found.env_id, found.path, found.member) == ("evals@capitals", file, "capitals")
    assert choose_task(found, [file]) == (file, "capitals")
    assert found.address is not None
    assert find_environment(found.address) == found, "a resumed run finds the same task again"


def test_several_tasks_are_listed_where_none_was_named(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"name one of them: evals\.py@sums, evals\.py@capitals"):
        choose_task(find_environment(str(file)), [file])


def test_a_misspelled_task_gets_the_nearest_name(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no task 'sum'; did you mean 'sums'\?"):
        choose_task(find_environment(f"{file}@sum"), [file])


def test_a_task_cannot_be_named_in_a_file_of_our_own(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("import proctor\ndef load_environment(): ...\n")
    with pytest.raises(ConfigError, match="leave it out"):
        import_loader(find_environment(f"{file}@sums"))


def test_a_check_says_what_works_and_what_does_not(file: Path) -> None:
    findings = {each.code: each.message for each in find_static_problems(find_environment(str(file)), {})}
    assert findings["N121"].startswith("written for Inspect")
    assert "model_graded_qa" in findings["N122"]
    assert "human_agent" in findings["W121"]
