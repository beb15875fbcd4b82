"""An environment's framework is found by what it imports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proctor import dialects
from proctor.checkup.static import find_static_problems
from proctor.dialects import inside
from proctor.dialects.isolated import Framework, has_framework
from proctor.packages.dialects import read_imports
from proctor.packages.loading import dialect_of, find_environment, load


@pytest.mark.parametrize(
    "source",
    [
        "import verifiers as vf",
        "import os, verifiers",
        "from verifiers.rubrics.rubric import Rubric",
        "try:\n    import verifiers\nexcept ImportError:\n    raise",
    ],
)
def test_an_import_in_any_form_is_seen(tmp_path: Path, source: str) -> None:
    file = tmp_path / "env.py"
    file.write_text(source)
    assert "verifiers" in read_imports([file])


@pytest.mark.parametrize(
    "source", ["# import verifiers", "text = 'import verifiers'", "import verifiers_like"]
)
def test_a_mention_is_not_an_import(tmp_path: Path, source: str) -> None:
    file = tmp_path / "env.py"
    file.write_text(source)
    assert "verifiers" not in read_imports([file])


def test_a_package_that_imports_it_in_a_submodule_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "my_env"
    (folder / "my_env").mkdir(parents=True)
    (folder / "my_env/__init__.py").write_text("from .environment import load_environment\n")
    (folder / "my_env/environment.py").write_text("import verifiers as vf\ndef load_environment(): ...\n")
    dialect = dialect_of(find_environment(str(folder)))
    assert dialect is not None
    assert dialect.title == "verifiers"


def test_an_environment_that_imports_proctor_is_ours_whatever_else_it_imports(tmp_path: Path) -> None:
    file = tmp_path / "env.py"
    file.write_text("import proctor as vf\nimport verifiers\ndef load_environment(): ...\n")
    assert dialect_of(find_environment(str(file))) is None


def test_isolation_is_refused_where_there_is_nothing_to_isolate(tmp_path: Path) -> None:
    from msgspec.structs import replace

    file = tmp_path / "env.py"
    file.write_text("import proctor\ndef load_environment(): ...\n")
    with pytest.raises(Exception, match="--isolated is for environments of other frameworks"):
        load(replace(find_environment(str(file)), isolated=True), {})


def test_a_check_says_what_of_its_framework_an_environment_uses_and_what_does_not_work(
    tmp_path: Path,
) -> None:
    file = tmp_path / "env.py"
    file.write_text(
        '"""A search over the web."""\nimport verifiers as vf\n'
        "def load_environment():\n"
        "    return vf.SandboxEnv(rubric=vf.RubricGroup([vf.Rubric(), vf.JudgeRubric()]))\n"
    )
    findings = {each.code: each.message for each in find_static_problems(find_environment(str(file)), {})}
    assert findings["N121"].startswith("written for verifiers")
    assert "Rubric" in findings["N121"]
    assert "JudgeRubric" in findings["N122"]
    assert "SandboxEnv" in findings["W121"]


@pytest.mark.parametrize("form", ["import verifiers.v1 as vf", "from verifiers import v1 as vf"])
def test_a_taskset_of_the_v1_engine_is_found_without_a_load_environment(tmp_path: Path, form: str) -> None:
    file = tmp_path / "sums.py"
    file.write_text(f"{form}\nclass Sums(vf.Taskset): ...\n")
    dialect = dialect_of(find_environment(str(file)))
    assert dialect is not None
    assert dialect.title == "verifiers"


def test_a_check_says_that_an_environment_of_several_agents_is_not_played(tmp_path: Path) -> None:
    file = tmp_path / "duel.py"
    file.write_text(
        '"""A duel."""\nimport verifiers.v1 as vf\nclass Sums(vf.Taskset): ...\nclass Duel(vf.Env): ...\n'
    )
    findings = {each.code: each.message for each in find_static_problems(find_environment(str(file)), {})}
    assert "Taskset" in findings["N121"]
    assert "plays several agents" in findings["W121"]


def test_a_module_that_defines_neither_is_not_taken_for_a_taskset(tmp_path: Path) -> None:
    file = tmp_path / "helpers.py"
    file.write_text("import verifiers.v1 as vf\ndef score(trace: vf.Trace): ...\n")
    assert dialect_of(find_environment(str(file))) is None


@pytest.mark.parametrize(("wanted", "fits"), [("packaging>=1", True), ("packaging<1", False)])
def test_a_framework_beside_proctor_is_used_only_in_a_release_that_the_dialect_plays(
    wanted: str, fits: bool
) -> None:
    assert has_framework(Framework("packaging", (wanted,))) is fits


def test_what_children_use_of_the_module_they_run_in_exists() -> None:
    """Their frameworks are not installed here, so that nothing else would import them."""
    sources = [file.read_text() for file in Path(dialects.__path__[0]).glob("*/*.py")]
    used = {name for source in sources for name in re.findall(r"\bproctor_inside\.(\w+)", source)}

    assert used
    assert {name for name in used if not hasattr(inside, name)} == set()
