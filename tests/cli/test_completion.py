"""The Tab key, through the protocol that shells speak, and through a real shell."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Ran

    Run = Callable[..., Ran]

Offers = Callable[..., list[str]]
ROW = '[[endpoint]]\nendpoint_id = "{}"\nmodel = "m"\nurl = "http://127.0.0.1:1/v1"\n'


@pytest.fixture
def offers(proctor: Run) -> Offers:
    """What is offered for the last of the words, as `kind,word`."""

    def ask(*words: str) -> list[str]:
        environ = {
            "_PROCTOR_COMPLETE": "bash_complete",
            "COMP_WORDS": shlex.join(["proctor", *words]),
            "COMP_CWORD": str(len(words)),
        }
        ran = proctor(environ=environ)
        assert ran.code == 0, ran.stderr
        assert ran.stderr == ""
        return ran.stdout.splitlines()

    return ask


def test_commands_and_their_flags_are_offered(offers: Offers) -> None:
    assert {"plain,eval", "plain,models", "plain,completion"} <= set(offers(""))
    assert {"plain,run", "plain,export"} <= set(offers("eval", ""))
    assert "plain,--rollouts-per-example" in offers("eval", "run", "--rol")


def test_environments_of_this_folder_and_installed_ones_are_offered(offers: Offers, tmp_path: Path) -> None:
    (tmp_path / "environments" / "my_env").mkdir(parents=True)
    (tmp_path / "elsewhere" / "their_env").mkdir(parents=True)

    assert {"plain,echo", "plain,my-env"} <= set(offers("eval", "run", ""))
    assert offers("eval", "run", "my") == ["plain,my-env", "file,my"]
    assert "plain,my-env" in offers("eval", "m"), "`run` may be left out"
    assert "plain,their-env" in offers("eval", "run", "-p", "elsewhere", "t")


def test_aliases_of_the_registry_are_offered_as_models(offers: Offers, tmp_path: Path) -> None:
    assert offers("eval", "run", "echo", "-m", "") == ["plain,local", "plain,scripted"]

    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "endpoints.toml").write_text(ROW.format("fast"))
    (tmp_path / "other.toml").write_text(ROW.format("slow"))

    assert offers("eval", "run", "echo", "-m", "f") == ["plain,fast"]
    assert offers("eval", "echo", "-m", "f") == ["plain,fast"]
    assert offers("eval", "run", "echo", "-e", "other.toml", "-m", "s") == ["plain,slow", "plain,scripted"]


def test_a_broken_registry_offers_less_and_says_nothing(offers: Offers, tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("[[endpoint")

    assert offers("eval", "run", "echo", "-e", "broken.toml", "-m", "") == ["plain,local", "plain,scripted"]


def test_runs_are_offered_to_resume_and_to_export(proctor: Run, offers: Offers) -> None:
    done = proctor("eval", "run", "echo", "-m", "scripted", "-n", "1", "-r", "1", "-s", "--json")
    folder = done.folder.relative_to(done.cwd)

    assert f"plain,{folder}" in offers("eval", "run", "echo", "--resume", "outputs")
    assert offers("eval", "export", "") == ["plain,latest", f"plain,{folder}", "dir,"]


def test_names_that_plugins_registered_are_offered(offers: Offers) -> None:
    assert "plain,otel" in offers("eval", "run", "echo", "--listener", "")
    assert "plain,anthropic_messages" in offers("eval", "run", "echo", "--api-client-type", "a")
    assert "plain,openrouter" in offers("eval", "run", "echo", "--provider", "openr")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(proctor: Run, shell: str) -> None:
    ran = proctor("completion", shell)

    assert ran.code == 0
    assert f"_PROCTOR_COMPLETE={shell}_complete" in ran.stdout
    assert ran.stderr == ""


def test_a_shell_nobody_knows_is_refused(proctor: Run) -> None:
    ran = proctor("completion", "powershell")

    assert ran.code == 2
    assert "'powershell' is not one of 'bash', 'zsh', 'fish'" in ran.stderr


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_real_bash_completes(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "endpoints.toml").write_text(ROW.format("fast"))
    program = tmp_path / "bin" / "proctor"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m proctor "$@"\n')
    program.chmod(0o755)
    script = f"""
        export PATH={shlex.quote(str(program.parent))}:$PATH
        eval "$(proctor completion bash)"
        complete -p proctor
        COMP_WORDS=(proctor eval run echo -m fas) COMP_CWORD=5
        _proctor_completion proctor fas -m
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """

    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stderr == ""
    assert "-F _proctor_completion proctor" in done.stdout
    assert done.stdout.splitlines()[-1] == "fast"
