from __future__ import annotations

from pathlib import Path

import pytest

from proctor.errors import ConfigError
from proctor.workflow.entrypoint import import_entrypoint

CLASSES = """
from proctor import AgentWorkflow, Grader
class Solve(AgentWorkflow):
    def run(self, ctx): ...
class Check(Grader):
    def grade(self, ctx): ...
"""


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_the_two_classes_of_an_entrypoint_are_found(tmp_path: Path) -> None:
    found = import_entrypoint(write(tmp_path, main=CLASSES), "main.py")

    assert found is not None
    assert (found.workflow.__name__, found.grader.__name__) == ("Solve", "Check")


def test_they_may_be_imported_from_neighbors(tmp_path: Path) -> None:
    folder = write(tmp_path, parts_of_it=CLASSES, main="from parts_of_it import Check, Solve\n")

    found = import_entrypoint(folder, "main.py")

    assert found is not None
    assert found.workflow.__name__ == "Solve"


def test_a_script_with_a_main_guard_and_no_classes_is_a_server(tmp_path: Path) -> None:
    folder = write(tmp_path, main="if __name__ == '__main__':\n    raise SystemExit('served')\n")

    assert import_entrypoint(folder, "main.py") is None


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("x = 1\n", r"main\.py has no AgentWorkflow: write a class .* or start a rollout server"),
        (CLASSES.partition("class Check")[0], r"main\.py has no Grader"),
        (CLASSES + "class Other(Solve): ...\n", r"more than one AgentWorkflow \(Other, Solve\)"),
        ("import nowhere\n", r"Importing .*main\.py failed: ModuleNotFoundError: .*main\.py:1"),
    ],
)
def test_an_entrypoint_that_offers_something_else_is_refused(
    tmp_path: Path, source: str, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        import_entrypoint(write(tmp_path, main=source), "main.py")


def test_a_missing_entrypoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"There is no entrypoint 'main\.py'"):
        import_entrypoint(tmp_path, "main.py")
