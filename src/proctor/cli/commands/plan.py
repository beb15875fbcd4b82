"""`proctor eval plan`: how many tasks and rollouts for what you want to show, and what a budget can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from proctor.cli.commands.shared_options import FiniteRange, dir_option, json_option
from proctor.cli.options import complete_parameter
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.cli.commands.compared_sides import SideRuns
    from proctor.comparison.design import DesignGoal, EvaluationDesign

above_zero = FiniteRange(0, min_open=True)


@click.command("plan", short_help="Say how many tasks and rollouts you need, and what a budget can show.")
@click.argument("run", metavar="RUN", shell_complete=complete_parameter)
@click.option("--against", metavar="RUN", help="A run of the other model, which shows how the two differ.")
@click.option("--halfwidth", type=above_zero, metavar="X", help="Know the mean reward to within X.")
@click.option(
    "--difference", type=above_zero, metavar="X", help="Find a true difference of X between models."
)
@click.option("--budget", type=above_zero, metavar="USD", help="What can this many dollars show?")
@click.option(
    "--rollouts", type=click.IntRange(2, 10**9), metavar="N", help="What can this many rollouts show?"
)
@click.option(
    "-r",
    "--rollouts-per-example",
    "counts",
    type=click.IntRange(1, 10_000),
    multiple=True,
    help="Only this many rollouts per task; repeatable. [default: 1, 2, 4, 8 and as many as RUN has]",
)
@click.option("--most-tasks", type=click.IntRange(min=2), metavar="N", help="There are only N tasks.")
@click.option(
    "--power",
    type=FiniteRange(0.5, 0.999, min_open=True),
    default=0.8,
    show_default=True,
    help="Power: how often to find the difference if it exists.",
)
@click.option(
    "--level",
    type=FiniteRange(0.5, 0.999),
    default=0.95,
    show_default=True,
    help="Confidence level of intervals; tests are made at 1 - level.",
)
@click.option(
    "--correlation",
    type=FiniteRange(0, 1),
    default=0.5,
    show_default=True,
    help="Correlation of the two models' task scores, if there is no --against to measure it.",
)
@dir_option
@json_option
def plan_command(
    run: str,
    against: str | None,
    halfwidth: float | None,
    difference: float | None,
    budget: float | None,
    rollouts: int | None,
    counts: tuple[int, ...],
    most_tasks: int | None,
    power: float,
    level: float,
    correlation: float,
    dirs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Plan an evaluation from a pilot or from past runs: RUN is a run, several of one recipe
    separated by commas, 'latest', or a run's whole id on the server.

    Without a goal, it says what the same number of rollouts as in RUN can show. A pilot needs at least two
    rollouts per task to tell whether more tasks or more rollouts help more.

    \b
    proctor eval plan latest --halfwidth 0.02
    proctor eval plan 1a2b --against 3c4d --difference 0.03 --power 0.9
    proctor eval plan 1a2b,5e6f --budget 25
    """
    from proctor.cli.commands.compared_sides import read_side
    from proctor.cli.views.design import design_lines
    from proctor.cli.views.page import page_width, print_lines
    from proctor.cli.views.stdout import print_json
    from proctor.comparison.design import DesignGoal

    wanted = {"halfwidth": halfwidth, "difference": difference, "budget": budget, "rollouts": rollouts}
    given = {kind: amount for kind, amount in wanted.items() if amount is not None}
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(f'--{kind}' for kind in given)} are two goals; give one of them.")
    side = read_side(run, dirs, summaries=True)
    kind, amount = next(iter(given.items()), ("rollouts", sum(each.scores.scored for each in side.runs)))
    goal = DesignGoal(
        kind=kind,  # type: ignore[arg-type]
        amount=amount,
        level=level,
        power=power,
        correlation=correlation,
        most_tasks=most_tasks,
        rollouts=tuple(sorted(set(counts))),
    )
    design = design_from(side, None if against is None else read_side(against, dirs), goal)
    if as_json:
        print_json(design)
    else:
        print_lines(design_lines(design, page_width()))


def design_from(side: SideRuns, other: SideRuns | None, goal: DesignGoal) -> EvaluationDesign:
    from proctor.comparison.design import design_evaluation, measure_cost

    for each in (side, other):
        if each is not None and len(each.groups("environment", "model", "label")) > 1:
            raise ConfigError(f"{each.word} holds runs of several recipes; name runs of one.")
    against = [] if other is None else [run.scores for run in other.runs]
    cost = measure_cost([run.summary for run in side.runs if run.summary is not None])
    try:
        return design_evaluation([run.scores for run in side.runs], against, cost, goal)
    except ValueError as error:
        raise ConfigError(f"{side.word}: {error}.") from error
