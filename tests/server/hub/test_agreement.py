"""A wheel says of itself what its source says of it, and its hash covers both."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.hub.packages import Made, made, push, write_wheel
from tests.server.serving import Served

INFO = "greet-0.1.0.dist-info"


def rewritten(**changes: str) -> Callable[[Path], None]:
    """Write the wheel again with other contents of what describes it."""
    others = {f"{INFO}/{name.replace('__', '.')}": text.encode() for name, text in changes.items()}

    def rewrite(path: Path) -> None:
        with zipfile.ZipFile(path) as old:
            files = {name: old.read(name) for name in old.namelist()} | others
        files[f"{INFO}/RECORD"] = b"".join(f"{name},,\n".encode() for name in files)
        with zipfile.ZipFile(path, "w") as new:
            for name, data in files.items():
                new.writestr(name, data)

    return rewrite


def depending(needs: str) -> Callable[[Path], None]:
    return lambda path: write_wheel(path, "greet", "0.1.0", {"greet.py": b""}, needs=needs)


def pushed_twice(served: Served, first: Made, second: Made) -> tuple[int, str]:
    ada = served.user("ada")
    assert push(ada, first).status == 201
    answer = push(ada, second)
    return answer.status, answer.code if answer.status >= 400 else ""


@pytest.mark.parametrize(
    ("project", "needs", "difference"),
    [
        ("", "evil", "METADATA requires 'evil', but pyproject.toml does not"),
        ('dependencies = ["helper"]', "", "requires 'helper', but the wheel's METADATA does not"),
        ('dependencies = ["helper>=2"]', "helper>=1", "METADATA requires 'helper>=1'"),
        ("", "evil ; extra == 'x' or python_version > '3'", "METADATA requires 'evil; extra"),
        ("", "evil ; python_version > '3' or (os_name == 'a') and extra == 'x'", "requires 'evil;"),
        ('dependencies = ["helper"]', "helper @ http://127.0.0.1:9/x.whl", "METADATA requires 'helper @"),
        ('requires-python = ">=3.12"', "", "requires Python '>=3.12', but the wheel's METADATA '>=3.10'"),
    ],
)
def test_a_wheel_that_depends_on_something_else_than_its_source_is_refused(
    served: Served, tmp_path: Path, project: str, needs: str, difference: str
) -> None:
    answer = push(served.user("ada"), made(tmp_path, project=f"{project}\n", wheel=depending(needs)))

    assert (answer.status, answer.code) == (422, "metadata_mismatch"), answer.body
    assert difference in answer.body["message"].replace('"', "'")


@pytest.mark.parametrize(
    ("project", "needs"),
    [
        ('dependencies = ["Help.er >= 1.0 , <2"]', "help-er (<2,>=1.0)"),
        ("dependencies = [\"helper; python_version<'4'\"]", 'helper ; python_version < "4"'),
        ('optional-dependencies = { x = ["helper"] }', "helper ; extra == 'x'"),
        (
            'optional-dependencies = { x = ["helper"] }',
            "helper ; (os_name == 'a' or os_name == 'b') and extra == 'x'",
        ),
        ('dynamic = ["dependencies"]', "helper"),
        ('requires-python = ">= 3.10"', ""),
    ],
)
def test_a_wheel_that_says_the_same_in_another_spelling_is_taken(
    served: Served, tmp_path: Path, project: str, needs: str
) -> None:
    answer = push(served.user("ada"), made(tmp_path, project=f"{project}\n", wheel=depending(needs)))

    assert answer.status == 201, answer.body


@pytest.mark.parametrize(
    "changes",
    [
        {"METADATA": "Metadata-Version: 2.1\nName: greet\nVersion: 0.1.0\nRequires-Dist: evil\n"},
        {"METADATA": "Metadata-Version: 2.1\nName: greet\nVersion: 0.1.0\nSummary: Other.\n"},
        {"entry_points__txt": "[console_scripts]\npython = evil:main\n"},
        {"WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\nTag: py3-none-any\n"},
    ],
    ids=["dependency", "summary", "script", "place"],
)
def test_another_description_is_another_content_hash(
    served: Served, tmp_path: Path, changes: dict[str, str]
) -> None:
    project = 'dynamic = ["dependencies"]\n'
    first = made(tmp_path / "one", project=project)
    second = made(tmp_path / "two", project=project, wheel=rewritten(**changes))

    assert first.content_hash != second.content_hash
    assert pushed_twice(served, first, second) == (409, "version_exists")


def test_another_version_of_the_build_backend_makes_the_same_hash(served: Served, tmp_path: Path) -> None:
    text = "Wheel-Version: 1.0\nGenerator: another 9.9\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    first, second = made(tmp_path / "one"), made(tmp_path / "two", wheel=rewritten(WHEEL=text))

    assert first.wheel != second.wheel
    assert pushed_twice(served, first, second) == (201, "")
