"""`proctor eval compare`: is one run better than another, and could the comparison have told?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from proctor.cli.commands.shared_options import (
    FiniteRange,
    dir_option,
    finite_float,
    json_option,
    level_option,
)
from proctor.cli.options import complete_parameter
from proctor.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from proctor.cli.commands.compared_sides import MatchedSides
    from proctor.cli.views.comparison import RunComparisons
    from proctor.comparison.measure import ComparisonOptions
    from proctor.comparison.scores import RunScores

SHOWN_FLIPS = 10


@click.command("compare")
@click.argument("baseline", metavar="BASELINE", shell_complete=complete_parameter)
@click.argument(
    "candidates", metavar="CANDIDATE…", nargs=-1, required=True, shell_complete=complete_parameter
)
@click.option(
    "--margin",
    type=finite_float,
    metavar="X",
    help="Also ask whether the candidate is equivalent within X, or no worse by more than X.",
)
@level_option
@click.option(
    "--min-coverage",
    type=FiniteRange(0, 1),
    help="Share of rollouts that must be scored for a verdict. [default: what each run was started with]",
)
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Only this metric; repeatable.")
@click.option(
    "-n",
    "most",
    type=click.IntRange(min=-1),
    default=SHOWN_FLIPS,
    show_default=True,
    help="Show this many tasks that differ; -1 shows all.",
)
@click.option("--seed", type=int, default=0, help="Seed of the permutation test. [default: 0]")
@click.option("--markdown", is_flag=True, help="Print Markdown, as for a pull request.")
@dir_option
@json_option
def compare_command(
    baseline: str,
    candidates: tuple[str, ...],
    margin: float | None,
    level: float,
    min_coverage: float | None,
    metrics: tuple[str, ...],
    most: int,
    seed: int,
    markdown: bool,
    dirs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compare each CANDIDATE with BASELINE, task by task, and say whether it is better.

    A run is named by its id or the beginning of it, its folder, 'latest', or its whole id on the server.
    Several runs of one recipe, with commas between them, are pooled. A folder that holds runs, such as one
    that you passed to -o, is a suite: its evaluations are compared one by one.

    \b
    proctor eval compare 1a2b 3c4d
    proctor eval compare 1a2b latest --margin 0.02
    proctor eval compare 1a2b,5e6f 3c4d,7a8b --markdown
    proctor eval compare results/main results/branch --json
    """
    from proctor.cli.views.comparison import compared_document, comparison_lines
    from proctor.cli.views.page import page_width, print_lines
    from proctor.cli.views.stdout import print_json, write_stdout
    from proctor.comparison.measure import ComparisonOptions

    check_options(margin, as_json, markdown)
    options = ComparisonOptions(
        level=level,
        margin=margin,
        min_coverage=min_coverage,
        metrics=metrics or None,
        seed=seed,
        most_tasks=most if most < 0 or not as_json else max(most, 1000),
    )
    compared = compare_words(baseline, candidates, options, dirs)
    if as_json:
        print_json(compared_document(compared))
    elif markdown:
        from proctor.cli.views.comparison_markdown import comparison_markdown

        write_stdout([comparison_markdown(compared).encode()])
    else:
        print_lines(comparison_lines(compared, most, page_width()))


def check_options(margin: float | None, as_json: bool, markdown: bool) -> None:
    if margin is not None and margin <= 0:
        raise ConfigError(f"--margin is a positive difference in reward, such as 0.02; got {margin:g}.")
    if as_json and markdown:
        raise ConfigError("--json and --markdown cannot be combined; give one of them.")


def compare_words(
    baseline: str, candidates: Sequence[str], options: ComparisonOptions, dirs: Sequence[str] = ()
) -> RunComparisons:
    """Read the runs that the words name and compare them, with p-values adjusted for each other."""
    import gc

    from proctor.cli.commands.compared_sides import match_sides, read_side
    from proctor.cli.views.comparison import ComparedPair, RunComparisons
    from proctor.comparison.compare import compare_all

    pairs: list[MatchedSides] = []
    only_baseline: list[str] = []
    only_candidate: list[str] = []
    gc.disable()  # rows become a million small values that all stay; looking for garbage among them is slow
    try:
        theirs = read_side(baseline, dirs)
        for word in candidates:
            match = match_sides(theirs, read_side(word, dirs))
            pairs += match.pairs
            only_baseline += match.only_baseline
            only_candidate += match.only_candidate
        scores = [
            ([run.scores for run in pair.baseline], [run.scores for run in pair.candidate]) for pair in pairs
        ]
        check_metrics(options.metrics, scores)
        comparisons = compare_all(scores, options)
    finally:
        gc.enable()
    found = [ComparedPair(each, pair.words) for each, pair in zip(comparisons, pairs, strict=True)]
    return RunComparisons(found, list(dict.fromkeys(only_baseline)), list(dict.fromkeys(only_candidate)))


def check_metrics(
    wanted: Sequence[str] | None, scores: Sequence[tuple[Sequence[RunScores], Sequence[RunScores]]]
) -> None:
    known = {
        name: None
        for sides in scores
        for side in sides
        for run in side
        for task in run.tasks[:1000]
        for name in task.metrics
    }
    for name in wanted or ():
        if name not in known:
            raise ConfigError(f"No metric {name!r} in these runs{did_you_mean(name, list(known))}")
