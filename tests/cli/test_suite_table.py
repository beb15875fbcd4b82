"""The table over several runs, as a user reads it and as a program does."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console

from proctor.cli.views.suite_rows import SuiteRow, find_best_rows, parse_label, suite_document
from proctor.cli.views.suite_table import show_suite, write_suite
from proctor.config.prices import Price
from proctor.evaluation.evaluate import Result
from proctor.report.lines import ErrorLine, RolloutLine
from proctor.report.tally import Tally
from proctor.run import Run, RunStatus
from proctor.trace import Usage

ALL = [1.0] * 40
NONE = [0.0] * 40
HALF = [0.0, 1.0] * 20


def result(
    rewards: Sequence[float | None], rollouts: int = 1, status: RunStatus = "finished", **run: Any
) -> Result:
    tally = Tally()
    for number, reward in enumerate(rewards):
        task, rollout = divmod(number, rollouts)
        usage = Usage(100, 20)
        if reward is None:
            error = ErrorLine("OverloadedError", "busy")
            tally.add(RolloutLine(task, rollout, "model_error", token_usage=usage, error=error))
        else:
            tally.add(RolloutLine(task, rollout, "scored", reward=reward, token_usage=usage))
    prices = {"priced": Price(1.0, 2.0)}
    model = run.pop("model", "priced")
    return Result(
        run=Run(id="1", env_id="e", model=model, status=status, started_at=10.0, ended_at=95.0, **run),
        summary=tally.summary(planned=len(rewards), rollouts_per_task=rollouts, model=model, prices=prices),
        folder=Path("outputs/evals/e--m/1"),
        notable={},
    )


def row(came_to: Result | None, name: str = "gsm8k", model: str = "small", **more: Any) -> SuiteRow:
    return SuiteRow(name=name, model=model, result=came_to, **more)


def lines_of(rows: Sequence[SuiteRow], width: int = 160) -> list[str]:
    text = io.StringIO()
    write_suite(Console(file=text, width=width, highlight=False), rows)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def interval_of(came_to: Result) -> str:
    interval = came_to.summary.reward.interval
    assert interval is not None
    return f"{interval.low:.3f} – {interval.high:.3f}"


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_every_run_has_a_line_with_its_numbers_in_the_order_asked_for() -> None:
    paired, mostly = result(HALF, rollouts=2), result([*ALL, None])
    rows = [row(paired, model="b"), row(mostly, model="a", min_coverage=0.9)]

    head, first, second, *_ = lines_of(rows)

    assert head.split()[:5] == ["environment", "model", "reward", "interval", "coverage"]
    assert head.split()[5:] == ["pass@1", "pass^2", "errors", "tokens", "cost", "time"]
    names, rest = ["gsm8k", "b", "0.500"], ["100%", "0.500", "0.000", "4.8k", "$0.0056", "1 min 25 s"]
    assert cells_of(first) == [*names, interval_of(paired), *rest]
    names, rest = ["gsm8k", "a", "1.000*"], ["97.5%", "1", "4.9k", "$0.0057", "1 min 25 s"]
    assert cells_of(second) == [*names, interval_of(mostly), *rest]


def test_what_was_swept_has_columns_of_its_own_only_if_every_run_has_it() -> None:
    swept = [row(result(ALL), label=f"temperature={value} difficulty=hard") for value in (0.5, 1.0)]
    head, first, _, *_ = lines_of(swept)
    assert head.split()[:4] == ["environment", "model", "temperature", "difficulty"]
    assert first.split()[:4] == ["gsm8k", "small", "0.5", "hard"]

    mixed = [*swept, row(result(ALL), name="wordle")]
    head, first, *_ = lines_of(mixed)
    assert head.split()[:3] == ["environment", "model", "label"]
    assert "temperature=0.5 difficulty=hard" in first


@pytest.mark.parametrize(
    ("label", "pairs"),
    [
        ("temperature=0.5 difficulty=hard", {"temperature": "0.5", "difficulty": "hard"}),
        ("stop=a b", {"stop": "a b"}),
        ("filter=a=b", {"filter": "a=b"}),
        ("", {}),
        ("#2", {}),
        ("odd temperature=1", {}),
    ],
)
def test_a_label_is_read_as_pairs(label: str, pairs: dict[str, str]) -> None:
    assert parse_label(label) == pairs


def test_a_best_run_is_marked_only_where_its_interval_stands_alone() -> None:
    apart = [row(result(ALL)), row(result(NONE), model="b"), row(result(HALF), name="wordle")]
    assert find_best_rows(apart) == {0}
    assert "1.000*" in lines_of(apart)[1]
    assert any(line.startswith("* best on its environment") for line in lines_of(apart))

    close = [row(result(HALF)), row(result([*HALF[:-2], 1.0, 1.0]), model="b")]
    assert find_best_rows(close) == set()
    assert "*" not in "\n".join(lines_of(close))


def test_a_run_that_was_not_scored_enough_is_marked_and_never_the_best() -> None:
    rows = [row(result([*ALL, *[None] * 10])), row(result(NONE), model="b")]

    lines = lines_of(rows)

    assert find_best_rows(rows) == set()
    assert "80%!" in lines[1]
    assert any(line.startswith("! no verdict") for line in lines)


def test_a_failed_run_says_why_beneath_and_a_stopped_one_how_to_go_on() -> None:
    rows = [
        row(result(ALL)),
        row(None, model="[red]b[/red]", label="t=1", error="b refused\x1b[2J the key;\nset another."),
        row(result(HALF[:8], status="stopped", note="stopped by hand"), model="c"),
    ]

    lines = lines_of(rows)

    assert lines[2].split()[-1] == "failed"
    assert "Failed: gsm8k · [red]b[/red] t=1: b refused the key; set another." in lines
    assert "Continue with the same command and --resume: finished rollouts are not played again." in lines
    assert "3 runs (finished 1, failed 1, stopped 1): 4,800 tokens in, 960 out" in "\n".join(lines)


def test_the_total_adds_costs_and_says_what_has_no_price() -> None:
    lines = lines_of([row(result(ALL)), row(result(ALL, model="unknown"), model="b")])

    (total,) = [line for line in lines if line.startswith("2 runs")]

    assert "8,000 tokens in, 1,600 out, $0.0056 at list prices of" in total
    assert total.endswith("without 1 of unknown price")


def test_prices_of_ones_own_are_not_called_list_prices() -> None:
    own, listed = row(result(ALL), own_price=True), row(result(ALL), model="b")

    assert "$0.0112 at prices of the endpoint registry" in "\n".join(lines_of([own, own]))
    assert "and prices of the endpoint registry" in "\n".join(lines_of([own, listed]))
    assert "registry" not in "\n".join(lines_of([listed, listed]))


def test_the_most_frequent_error_of_a_run_stands_beneath_the_table() -> None:
    lines = lines_of([row(result([1.0, None, None]), model="a", label="t=1"), row(result(ALL))])

    assert "gsm8k · a t=1: 2 × model_error: busy" in lines


def test_the_last_line_says_where_the_results_are_kept() -> None:
    elsewhere = msgspec.structs.replace(result(ALL), folder=Path("mine/evals/e--n/2"))

    assert lines_of([row(result(ALL)), row(result(ALL)), row(elsewhere)])[-2:] == [
        "Kept in outputs/evals",
        "Kept in mine/evals",
    ]


@pytest.mark.parametrize("width", [120, 80, 60, 40])
def test_the_table_fits_the_screen_and_keeps_what_tells_most(width: int) -> None:
    rows = [
        row(
            result(HALF, rollouts=2),
            name="a-long-environment-name-of-some-owner",
            model=f"provider/some-quite-long-model-name-{number}",
            label=f"temperature={number} difficulty=hard",
        )
        for number in range(3)
    ]

    lines = lines_of(rows, width)

    (head,) = [line for line in lines if "reward" in line]
    assert max(map(cell_len, lines)) <= width
    assert sum("0.500" in line for line in lines) == 3
    assert "coverage" in head
    if width >= 80:
        assert {"interval", "errors", "cost"} & set(head.split()) == {"interval", "cost"}


def test_a_name_that_all_share_gives_way_before_the_numbers_do() -> None:
    rows = [
        row(result(HALF, rollouts=2), name="one-environment", model="provider/one-model", label=f"t={number}")
        for number in range(2)
    ]

    environment, model, head, *_ = lines_of(rows, 80)

    assert (environment, model) == ("environment one-environment", "model provider/one-model")
    assert head.split()[:7] == ["t", "reward", "interval", "coverage", "pass@1", "pass^2", "tokens"]


def test_the_document_is_plain_and_complete() -> None:
    rows = [row(result(ALL), label="t=1"), row(None, label="t=2", error="no key")]

    document = json.loads(json.dumps(suite_document(rows)))

    first, second = document["runs"]
    assert (first["environment"], first["model"], first["chosen"]) == ("gsm8k", "small", {"t": "1"})
    assert first["summary"]["reward"]["mean"] == 1.0
    assert (first["status"], first["verdict"], first["best"]) == ("finished", True, False)
    assert (second["status"], second["error"], second["summary"]) == ("failed", "no key", None)
    assert document["total"]["runs"] == {"finished": 1, "failed": 1}
    assert document["total"]["usage"]["input_tokens"] == 4000


def test_the_table_goes_to_stdout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")

    show_suite([row(result(ALL), label="t=1"), row(result(NONE), label="t=2")])

    assert capsys.readouterr().out.splitlines()[0].split()[:3] == ["environment", "model", "t"]
