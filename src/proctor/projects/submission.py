"""What a recipe asks of a server: its values, the rows it selects, the commit its code is taken from.

Reads files and git, and reaches no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import msgspec

from proctor.api.runs import RunDataset
from proctor.api.sources import NewSubmission
from proctor.config.experiment import RecipeFile
from proctor.datasets.dataset import SelectedTasks, validate
from proctor.datasets.references import DatasetReference
from proctor.datasets.selection import RowSelection, parse_ranges, select_rows
from proctor.projects.checkout import Checkout, resolve_commit
from proctor.projects.settings import RowChoice
from proctor.trace import text_of

MEASURED_ROWS = 200


class SubmittedDataset(msgspec.Struct, frozen=True):
    """The dataset of a submission."""

    path: Path
    version: RunDataset
    selection: RowSelection


def read_dataset(
    recipe: RecipeFile, path: Path, on_server: DatasetReference, choice: RowChoice
) -> SubmittedDataset:
    """Check the file, and select the rows exactly as a local run does; it is, or becomes, a version of the
    dataset `on_server`."""
    choice.check()
    report = validate(path)
    report.raise_if_invalid()
    evaluation = recipe.recipe.evaluation
    selection = select_rows(
        report.rows,
        evaluation.limit,
        content_hash=report.sha256,
        seed=evaluation.seed if evaluation.limit is None else 0,
        offset=choice.offset,
        rows=parse_ranges(choice.rows) if choice.rows else (),
    )
    tasks = list(islice(SelectedTasks(path, selection, report.mode), MEASURED_ROWS))
    characters = sum(len(text_of(message)) for task in tasks for message in task.prompt)
    version = RunDataset(
        owner=on_server.owner,
        name=on_server.name,
        format=report.format,  # type: ignore[arg-type]  # only the three formats have a scanner
        sha256=report.sha256,
        selected_rows=len(selection),
        prompt_characters=characters / max(1, len(tasks)),
    )
    return SubmittedDataset(path, version, selection)


def build_submission(
    recipe: RecipeFile,
    source: str,
    dataset: SubmittedDataset,
    checkout: Checkout,
    choice: RowChoice,
    secrets: Mapping[str, str],
) -> NewSubmission:
    """Code from the recipe's commit or branch; else from the branch you are on."""
    experiment = recipe.recipe.experiment
    commit = resolve_commit(checkout.root, experiment.commit_sha) if experiment.commit_sha else ""
    branch = "" if commit else experiment.branch or checkout.branch
    return NewSubmission(
        source=source,
        recipe=recipe.file.data,
        dataset=dataset.version,
        branch=branch,
        commit_sha=commit or ("" if branch else checkout.head),
        rows=choice.rows,
        offset=choice.offset,
        custom_secrets=secrets,
    )
