"""Every number that a reader can see of a run is the result of the same functions, whoever shows it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import aiohttp
import msgspec
import pytest

from proctor import Rubric, Scripted, SingleTurnEnv, evaluate
from proctor.comparison.agreement import examine_judge
from proctor.comparison.compare import compare_runs
from proctor.comparison.design import DesignGoal, design_evaluation
from proctor.comparison.gate import GateInput, decide_gate
from proctor.comparison.gate_policy import parse_policy
from proctor.config.toml_file import parse_toml
from proctor.evaluation.execute import Result
from proctor.pages.files import BuiltPages
from proctor.reading.folders.find import find_run_folders
from proctor.reading.folders.library import FolderLibrary
from proctor.rollout import RolloutKey
from proctor.stats.mean import headline_estimate
from proctor.store.folder import read_metadata
from proctor.store.labels import Label, append_labels
from proctor.store.scores import read_rollout_scores, read_scores, read_summary
from proctor.viewer.app import build_app
from proctor.viewer.listen import bind_loopback, serve_app

if TYPE_CHECKING:
    from tests.conftest import Ran

ROLLOUTS = 3


def luck(answer: str) -> float:
    return float(answer)


def play(answers: list[str], outputs: Path) -> Result:
    rows = [{"question": f"say {number}", "answer": answer} for number, answer in enumerate(answers)]
    environment = SingleTurnEnv(rows, rubric=Rubric(luck))
    settings: dict[str, Any] = {"rollouts_per_example": ROLLOUTS, "output_dir": str(outputs)}
    return asyncio.run(evaluate(environment, Scripted(), **settings))


@pytest.fixture
def runs(home: Path) -> list[Result]:
    outputs = home / "outputs"
    first = play(["1", "0", "0.5", "0.25", "1", "1", "0", "0.75"] * 2, outputs)
    second = play(["1", "1", "0.5", "0.5", "1", "1", "0", "1"] * 2, outputs)
    return [first, second]


def read_view(outputs: Path, *paths: str) -> list[Any]:
    """What `proctor view` answers, as the dashboard reads it."""

    async def main() -> list[Any]:
        library = FolderLibrary(lambda: find_run_folders([outputs]))
        try:
            app = build_app(library, BuiltPages(outputs / "no dist"))
            async with serve_app(app, bind_loopback(0)) as url, aiohttp.ClientSession(url) as client:
                return [await (await client.get(f"/api/v1{path}")).json() for path in paths]
        finally:
            library.close()

    return asyncio.run(main())


def plain(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def test_a_runs_numbers_are_the_same_wherever_they_are_read(
    runs: list[Result], home: Path, proctor: Callable[..., Ran]
) -> None:
    run = runs[0]
    summary, name = plain(run.summary), run.run.id
    rewards = [
        [float(json.loads(line)["reward"]) for line in lines]
        for lines in group_lines((run.folder / "results.jsonl").read_bytes().splitlines())
    ]

    info, shown = read_view(home / "outputs", f"/runs/{name}", f"/runs/{name}/summary")
    history = json.loads(proctor("eval", "history", run.run.env_id, "--json", cwd=home).stdout)
    (stored,) = (each for each in history["runs"] if each["id"] == name)

    assert summary["reward"] == plain(headline_estimate(rewards))
    assert plain(read_summary(run.folder)) == summary
    assert read_metadata(run.folder)["summary"] == summary
    assert info["summary"] == summary
    assert stored["reward"] == summary["reward"]
    assert find_summary(shown) == summary


def group_lines(lines: list[bytes]) -> list[list[bytes]]:
    groups: dict[int, list[bytes]] = {}
    for line in lines:
        groups.setdefault(json.loads(line)["example_id"], []).append(line)
    return list(groups.values())


def find_summary(page: Any) -> Any:
    return page.get("summary", page)


def test_the_report_prints_the_numbers_of_the_summary(runs: list[Result], capsys: Any) -> None:
    from proctor.cli.views.report import interval_text, metric_rows, result_rows

    summary = runs[0].summary
    reward = dict(result_rows(summary, 1.0))["reward"]

    assert f"{summary.reward.mean:.3f}" in str(reward)
    assert interval_text(summary.reward) in str(reward)
    assert dict(metric_rows(summary))["luck"].startswith(f"{summary.metrics['luck'].mean:.3f}")


def test_a_comparison_is_the_same_wherever_it_is_read(
    runs: list[Result], home: Path, proctor: Callable[..., Ran]
) -> None:
    first, second = (run.run.id for run in runs)
    expected = compare_runs([read_scores(runs[0].folder, first)], [read_scores(runs[1].folder, second)])

    (page,) = read_view(home / "outputs", f"/compare?run={first}&run={second}")
    (told,) = json.loads(proctor("eval", "compare", first, second, "--json", cwd=home).stdout)["comparisons"]
    text = " ".join(proctor("eval", "compare", first, second, cwd=home).stdout.split())

    assert told == plain(expected)
    without_tasks = {**told, "tasks": [], "differing_tasks": page["comparisons"][0]["differing_tasks"]}
    assert page["comparisons"][0] == without_tasks
    assert told["text"] in text
    assert plain(runs[0].summary.reward) == told["baseline"]["reward"]


def test_a_plan_is_the_same_wherever_it_is_read(
    runs: list[Result], home: Path, proctor: Callable[..., Ran]
) -> None:
    from proctor.comparison.design import RolloutCost

    run, summary = runs[0], runs[0].summary
    goal = DesignGoal(kind="halfwidth", amount=0.05)
    tokens = (summary.usage.input_tokens + summary.usage.output_tokens) / summary.finished
    cost = RolloutCost(usd=None if summary.cost_usd is None else 0.0, tokens=tokens)
    expected = design_evaluation([read_scores(run.folder, run.run.id)], [], cost, goal)

    told = json.loads(proctor("eval", "plan", run.run.id, "--halfwidth", "0.05", "--json", cwd=home).stdout)
    (shown,) = read_view(home / "outputs", f"/runs/{run.run.id}/plan?halfwidth=0.05")

    assert told == plain(expected)
    assert shown == told


def test_a_gates_verdict_is_the_same_wherever_it_is_read(
    runs: list[Result], home: Path, proctor: Callable[..., Ran]
) -> None:
    first, second = (run.run.id for run in runs)
    policy = '[[rules]]\nmeasure = "reward"\nmax_drop = 0.1\n[[rules]]\nmeasure = "reward"\nat_least = 0.6\n'
    (home / "gate.toml").write_text(policy)
    expected = decide_gate(
        parse_policy(parse_toml(policy, Path("gate.toml"))),
        GateInput(
            candidate=[read_scores(runs[1].folder, second)],
            summaries=[read_summary(runs[1].folder)],
            baseline=[read_scores(runs[0].folder, first)],
        ),
    )

    words = ("eval", "gate", second, "--baseline", first, "--policy", "gate.toml", "--json")
    (told,) = json.loads(proctor(*words, cwd=home).stdout)["environments"]
    (shown,) = read_view(home / "outputs", f"/runs/{second}/gate?baseline={first}&policy={quote(policy)}")

    assert told == plain(expected)
    assert {**shown, "comparison": None} == {**told, "comparison": None}
    assert shown["comparison"] == {**told["comparison"], "tasks": []}


def test_agreement_and_history_are_the_same_wherever_they_are_read(
    runs: list[Result], home: Path, proctor: Callable[..., Ran]
) -> None:
    run, name = runs[0], runs[0].run.id
    scores: dict[RolloutKey, float] = {
        (task, number): float(task % 3 == 0) for task in range(8) for number in range(2)
    }
    append_labels(
        run.folder,
        [
            Label(example_id=task, rollout=number, person="maria", score=score)
            for (task, number), score in scores.items()
        ],
    )
    expected = examine_judge(read_rollout_scores(run.folder), {"maria": scores})

    told = json.loads(proctor("eval", "agreement", name, "--json", cwd=home).stdout)
    listed = json.loads(proctor("eval", "history", run.run.env_id, "--json", cwd=home).stdout)["runs"]
    shown, history = read_view(home / "outputs", f"/runs/{name}/agreement", f"/runs/{name}/history")

    assert told == plain(expected)
    assert shown == told
    means = {each["id"]: each["reward"] for each in listed}
    assert {each["id"] for each in history["items"]} == set(means)
    for each in history["items"]:
        assert each["score"]["mean"] == means[each["id"]]["mean"]
        assert each["score"]["interval"] == means[each["id"]]["interval"]
