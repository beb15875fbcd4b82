"""The notebook in examples/ runs from its first cell to its last, and shows the numbers of the report."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tests.cli.in_process import run_command

NOTEBOOK = Path(__file__).parent.parent / "examples" / "results.ipynb"


def compile_cells(path: Path) -> list[CodeType]:
    """The code of each cell; `await` may stand outside of functions, as in Jupyter."""
    cells = [
        cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
    ]
    return [
        compile(
            "".join(cell["source"]), f"{path.name}, cell {cell['id']}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        )
        for cell in cells
    ]


def run_cells(path: Path) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}

    async def run() -> None:
        for code in compile_cells(path):
            ran = eval(code, names)
            if inspect.iscoroutine(ran):
                await ran

    asyncio.run(run())
    return names


@pytest.fixture
def names(home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("MPLCONFIGDIR", str(home / "matplotlib"))
    found = run_cells(NOTEBOOK)
    found["plt"].close("all")
    return found


def test_the_notebook_shows_what_the_report_the_query_and_the_comparison_show(
    names: dict[str, Any], home: Path
) -> None:
    small, large = names["small"], names["large"]
    means = dict(names["by_model"].iter_rows())
    folders = (str(small.folder), str(large.folder))
    sql = (
        "select model, avg(rate) mean from (select model, example_id, avg(reward) rate from rollouts "
        "group by all) group by model order by model"
    )

    asked = {
        row["model"]: row["mean"] for row in json.loads(run_command("query", sql, *folders, "--json").out)
    }
    (compared,) = json.loads(run_command("eval", "compare", *folders, "--json").out)["comparisons"]

    assert len(names["frame"]) == 320
    for result in (small, large):
        name = result.run.model
        assert means[name] == pytest.approx(result.summary.reward.mean)
        assert asked[name] == pytest.approx(result.summary.reward.mean)
    assert compared["text"] == names["comparison"].text
    assert compared["reward"]["difference"] == pytest.approx(means["large"] - means["small"])


def test_the_notebook_is_stored_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]

    assert all(not cell.get("outputs") for cell in cells), "run it, but commit it clean"
