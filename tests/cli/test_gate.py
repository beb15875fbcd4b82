"""`proctor eval gate`: a pull request's whole story, as its workflow and its author see it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
import yaml
from click.testing import CliRunner

from proctor.cli.commands.gate import gate_command
from tests.comparison.stored_runs import write_run

if TYPE_CHECKING:
    from tests.conftest import Ran

CI = Path(__file__).parents[2] / "examples" / "ci"
POLICY = '[[rules]]\nmeasure = "reward"\nmax_drop = 0.05\n\n[[rules]]\nmeasure = "errors"\nat_most = 0\n'


def find_gate_command(workflow: Path) -> list[str]:
    """The words after `proctor` of the one line of a workflow that decides."""
    (line,) = re.findall(r"proctor (eval gate [^|\n]*)", workflow.read_text())
    return str(line).split()


def evaluate(proctor: Callable[..., Ran], tasks: int, broken: Sequence[int], folder: str, home: Path) -> None:
    """An evaluation of a bot that answers everything but the broken tasks."""
    script = [{"when": f"say {task}", "text": "no"} for task in broken]
    (home / "bot.jsonl").write_text("\n".join(map(json.dumps, script)))
    words = ("eval", "run", "echo", "-m", "scripted", "-n", str(tasks), "-r", "1", "-d", "-A", "-o", folder)
    ran = proctor(*words, "-b", "bot.jsonl") if broken else proctor(*words)
    assert ran.code == 0, ran.stderr


def test_a_pull_request_that_breaks_the_bot_is_stopped_and_told_why(
    proctor: Callable[..., Ran], tmp_path: Path
) -> None:
    (tmp_path / "gate.toml").write_text(POLICY)
    evaluate(proctor, 60, (), "results/main", tmp_path)
    evaluate(proctor, 60, range(10, 40), "results/new", tmp_path)

    words = find_gate_command(CI / "github.yml")
    failed = proctor(*words, environ={"GITHUB_ACTIONS": "true"})

    assert failed.code == 3, failed.stderr
    assert failed.stdout.splitlines()[-1].startswith("::error title=echo%3A reward%3A drop at most 0.05")
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()[0]
    assert suite.attrib["failures"] == "1"
    (failure,) = suite.findall("testcase/failure")
    assert "proctor trace diff" in (failure.text or "")
    comment = (tmp_path / "gate.md").read_text()
    assert comment.startswith("## ❌ Evaluation gate: FAIL")
    assert "| ❌ FAIL | reward: drop at most 0.05 against the baseline |" in comment
    lost = re.search(r"`proctor (trace diff [^`]*)`", comment)
    assert lost
    assert proctor(*lost[1].split()).code == 0


def test_the_same_with_too_few_tasks_is_inconclusive(home: Path) -> None:
    (home / "gate.toml").write_text(POLICY)
    write_run(home / "results" / "main" / "r1", {task: [1.0] for task in range(8)})
    write_run(home / "results" / "new" / "r2", {task: [float(task != 3)] for task in range(8)})

    words = find_gate_command(CI / "gitlab.yml")[2:]
    done = CliRunner().invoke(gate_command, words, env={"GITHUB_ACTIONS": "true"})

    assert done.exit_code == 4, done.stderr
    assert "::warning title=capitals%3A reward%3A drop at most 0.05" in done.stdout
    suite = ElementTree.parse(home / "gate.xml").getroot()[0]
    assert (suite.attrib["failures"], suite.attrib["errors"]) == ("0", "1")
    assert (home / "gate.md").read_text().startswith("## ❔ Evaluation gate: INCONCLUSIVE")


@pytest.mark.parametrize("name", ["github.yml", "gitlab.yml"])
def test_the_workflows_are_yaml_that_runs_and_gates(name: str) -> None:
    workflow = yaml.safe_load((CI / name).read_text())

    assert "evaluate" in str(workflow)
    assert find_gate_command(CI / name)[:3] == ["eval", "gate", "results/new"]


def gate(*words: str) -> tuple[int, Any]:
    done = CliRunner().invoke(gate_command, (*words, "--json"))
    return done.exit_code, json.loads(done.stdout)


def test_a_suite_is_gated_environment_by_environment_and_a_missing_one_is_open(home: Path) -> None:
    (home / "gate.toml").write_text(
        '[[rules]]\nmeasure = "reward"\nno_regression = true\n\n'
        '[[rules]]\nmeasure = "reward"\nat_least = 0.9\nenvironment = "sums"\n'
    )
    good = {task: [1.0] for task in range(50)}
    for side, names in (("main", ("sums", "letters", "gone")), ("branch", ("sums", "letters"))):
        for name in names:
            write_run(home / side / "evals" / f"{name}--m" / "r1", good, env_id=name)

    code, report = gate("branch", "--baseline", "main", "--policy", "gate.toml")

    assert (code, report["outcome"], report["missing"]) == (4, "INCONCLUSIVE", ["gone"])
    assert {each["environment"]: len(each["rules"]) for each in report["environments"]} == {
        "letters": 1,
        "sums": 2,
    }
    assert all(each["outcome"] == "PASS" for each in report["environments"])


def test_a_rule_about_an_environment_that_was_not_run_is_open_and_the_others_may_lack_one(home: Path) -> None:
    good = {task: [1.0] for task in range(50)}
    for name in ("sums", "letters"):
        write_run(home / "branch" / "evals" / f"{name}--m" / "r1", good, env_id=name)
    rule = '[[rules]]\nmeasure = "reward"\nat_least = 0.8\nenvironment = "{}"\n'
    (home / "sums.toml").write_text(rule.format("sums"))
    (home / "misspelled.toml").write_text(rule.format("sums") + rule.format("leters"))

    assert gate("branch", "--policy", "sums.toml")[0] == 0
    code, report = gate("branch", "--policy", "misspelled.toml", "--junit", "x.xml")

    assert (code, report["missing"]) == (4, ["leters"])
    (missing,) = ElementTree.parse(home / "x.xml").getroot().iterfind(".//error")
    assert missing.get("message") == "was not run; a rule is about it"


def test_a_run_passes_with_exit_code_0_and_without_a_baseline(home: Path) -> None:
    (home / "gate.toml").write_text('[[rules]]\nmeasure = "reward"\nat_least = 0.8\n')
    write_run(home / "r1", {task: [1.0] for task in range(50)})

    assert gate("r1", "--policy", "gate.toml")[0] == 0


def test_nothing_a_model_named_can_forge_an_annotation(home: Path) -> None:
    (home / "gate.toml").write_text('[[rules]]\nmeasure = "reward"\nat_least = 0.8\n')
    write_run(home / "r1", {task: [0.0] for task in range(50)}, env_id="a\n::error::forged", model="m]]>")
    words = "r1 --policy gate.toml --annotations github --junit x.xml --markdown m.md"

    done = CliRunner().invoke(gate_command, words.split())

    assert done.exit_code == 3
    (annotation,) = (line for line in done.stdout.splitlines() if line.startswith("::"))
    assert annotation.startswith(
        "::error title=a %3A%3Aerror%3A%3Aforged%3A reward%3A at least 0.8::0 over 50"
    )
    assert ElementTree.parse(home / "x.xml").getroot().tag == "testsuites"


def test_a_report_that_cannot_be_written_is_an_error(home: Path, proctor: Callable[..., Ran]) -> None:
    (home / "gate.toml").write_text('[[rules]]\nmeasure = "reward"\nat_least = 0.8\n')
    write_run(home / "r1", {task: [1.0] for task in range(50)})
    (home / "file").write_text("")

    refused = proctor("eval", "gate", "r1", "--policy", "gate.toml", "--junit", "file/x.xml")

    assert refused.code == 1
    assert refused.stderr.startswith("Error: Cannot write file/x.xml")
