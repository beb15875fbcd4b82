"""`proctor eval agreement`: how far a judge agrees with people, and the score corrected by their labels."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.commands.rerun import run_argument
from proctor.cli.commands.shared_options import dir_option, json_option, level_option
from proctor.errors import ConfigError, StoreError, did_you_mean

if TYPE_CHECKING:
    from proctor.comparison.agreement import JudgeReport


@click.command("agreement", short_help="How far a run's judge agrees with people.")
@run_argument
@click.option("--metric", metavar="NAME", help="The judge's score is this metric. [default: the reward]")
@click.option(
    "--labels",
    "labelled",
    metavar="RUN",
    help="Use the labels of this run, from which RUN was scored again.",
)
@level_option
@dir_option
@json_option
def agreement_command(
    run: str,
    metric: str | None,
    labelled: str | None,
    level: float,
    dirs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compare a judge's scores with the labels that people gave with `proctor eval label`: Cohen's kappa on
    passing and failing, Krippendorff's alpha on the scores, and the score that people would have given, with
    the judge's error in its interval.

    \b
    proctor eval agreement latest
    proctor eval agreement latest --metric helpfulness --json
    proctor eval agreement 5e6f7a8b --labels 1a2b3c4d       # the same rollouts, another judge
    """
    from proctor.cli.views.agreement import agreement_lines
    from proctor.cli.views.page import print_lines
    from proctor.cli.views.stdout import print_json

    try:
        with ExitStack() as stack:
            folder = open_run_with_labels(run, dirs, stack)
            source = folder if labelled is None else open_run_with_labels(labelled, dirs, stack)
            report = examine_run(folder, source, metric, level)
    except StoreError as error:
        raise ConfigError(str(error)) from error
    if as_json:
        print_json(report)
    else:
        print_lines(agreement_lines(report))


def open_run_with_labels(word: str, dirs: tuple[str, ...], stack: ExitStack) -> Path:
    from proctor.cli.commands.labelled_runs import download_labelled_run
    from proctor.client.runs import is_run_id
    from proctor.store.index import find_run, search_folders

    if is_run_id(word):
        return stack.enter_context(download_labelled_run(word))
    return find_run(word, search_folders(dirs))


def examine_run(folder: Path, source: Path, metric: str | None, level: float) -> JudgeReport:
    from proctor.comparison.agreement import examine_judge
    from proctor.store.folder import find_rescored_run, read_metadata
    from proctor.store.labels import read_labels
    from proctor.store.scores import read_rollout_scores, read_scores

    metadata = read_metadata(folder)
    if source != folder:
        check_origin(find_rescored_run(metadata), source)
    judged = read_rollout_scores(folder, metric)
    if metric is not None and not judged:
        names = {name: None for task in read_scores(folder, "").tasks for name in task.metrics}
        raise ConfigError(f"No metric {metric!r} in this run{did_you_mean(metric, names)}")
    labels = read_labels(source)
    if not labels.scored:
        raise ConfigError(
            f"Run {source.name} has no labels yet; start with `proctor eval label {source.name}`."
        )
    threshold = metadata.get("pass_threshold")
    return examine_judge(
        judged,
        labels.scores,
        judge=metric or "reward",
        pass_threshold=threshold if isinstance(threshold, (int, float)) else 0.5,
        level=level,
    )


def check_origin(rescored_from: str | None, source: Path) -> None:
    """Labels are about answers, so another run may use them only if it has the same ones."""
    if rescored_from != source.name:
        raise ConfigError(
            f"RUN is not a re-score of {source.name}, so its answers differ; label RUN directly."
        )
