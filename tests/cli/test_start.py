"""A start costs little, because nothing is loaded that is not used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "aiohttp",
    "rich",
    "textual",
    "tqdm",
    "uvloop",
    "opentelemetry",
    "huggingface_hub",
    "datasets",
    "pyarrow",
    "xllamacpp",
    "math_verify",
    "mcp",
    "platformdirs",
    "proctor.engine",
    "proctor.env",
    "proctor.evaluation.evaluate",
    "proctor.models.http_client",
    "proctor.listeners",
    "proctor.models",
)
"""Each costs as much to load as all that a short command needs, or leads to one that does."""

COMMAND = """
import json, sys
sys.argv = ["proctor", *{words!r}]
from proctor.cli.main import main
try:
    main()
except SystemExit:
    pass
sys.stderr.write(json.dumps(sorted(sys.modules)))
"""


def loaded(code: str, cwd: Path) -> set[str]:
    """Everything that a new interpreter has loaded when the code is done."""
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr))


def heavy(modules: set[str]) -> list[str]:
    return [name for name in HEAVY if any(each == name or each.startswith(f"{name}.") for each in modules)]


def test_importing_the_package_loads_next_to_nothing(tmp_path: Path) -> None:
    modules = loaded(
        "import json, sys; before = set(sys.modules); import proctor; "
        "sys.stderr.write(json.dumps(sorted(set(sys.modules) - before)))",
        tmp_path,
    )

    assert modules == {"__future__", "proctor"}


@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["--help"],
        ["eval", "--help"],
        ["eval", "run", "--help"],
        ["eval", "export", "--help"],
        ["jobs", "--help"],
        ["trace", "show", "--help"],
        ["models", "--help"],
        ["models", "list"],
        ["login", "--help"],
        ["context", "--help"],
        ["token", "--help"],
        ["secret", "set", "--help"],
        ["completion", "zsh"],
    ],
    ids=" ".join,
)
def test_a_short_command_loads_nothing_heavy(words: list[str], tmp_path: Path) -> None:
    assert heavy(loaded(COMMAND.format(words=words), tmp_path)) == []


def test_a_run_that_asks_nobody_loads_no_http_client(tmp_path: Path) -> None:
    words = ["eval", "run", "echo", "-m", "scripted", "-n", "1", "-r", "1", "--json"]

    done = subprocess.run(
        [sys.executable, "-c", COMMAND.format(words=words)], cwd=tmp_path, capture_output=True, text=True
    )

    modules = set(json.loads(done.stderr.splitlines()[-1]))
    assert "proctor.models.scripted" in modules
    assert "aiohttp" not in modules


def test_this_would_notice(tmp_path: Path) -> None:
    assert heavy(
        loaded("import json, sys, rich; sys.stderr.write(json.dumps([*sys.modules]))", tmp_path)
    ) == ["rich"]
