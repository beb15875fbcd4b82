"""`proctor eval gate`: may this run pass? For CI: an exit code, JUnit XML, Markdown and annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.commands.shared_options import dir_option, json_option
from proctor.cli.exits import EXIT_GATE_FAILED, EXIT_INCONCLUSIVE, exit_process
from proctor.cli.options import complete_parameter
from proctor.cli.views.escape import echo
from proctor.errors import StoreError, describe_os_error

if TYPE_CHECKING:
    from proctor.cli.views.gate import GateReport
    from proctor.comparison.gate_policy import GatePolicy

EXIT_CODES = {"PASS": 0, "FAIL": EXIT_GATE_FAILED, "INCONCLUSIVE": EXIT_INCONCLUSIVE}
ANNOTATIONS = ("auto", "github", "none")


@click.command("gate")
@click.argument("run", metavar="RUN", shell_complete=complete_parameter)
@click.option(
    "--policy",
    "policy_path",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="TOML file with the rules.",
)
@click.option("--baseline", metavar="RUN", help="What to compare with, named as RUN is.")
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write JUnit XML here.")
@click.option(
    "--markdown",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write a comment for a pull request here.",
)
@click.option(
    "--annotations",
    type=click.Choice(ANNOTATIONS),
    default="auto",
    show_default=True,
    help="Print workflow annotations; auto: where GITHUB_ACTIONS is true.",
)
@dir_option
@json_option
def gate_command(
    run: str,
    policy_path: Path,
    baseline: str | None,
    junit: Path | None,
    markdown: Path | None,
    annotations: str,
    dirs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check RUN against the rules of a policy, and exit with 0 (PASS), 3 (FAIL) or 4 (INCONCLUSIVE).

    FAIL means that a violation was shown; INCONCLUSIVE, that there is too little data to tell. RUN and the
    baseline are named as for `proctor eval compare`, folders of suites included.

    \b
    proctor eval gate latest --policy gate.toml
    proctor eval gate results/branch --baseline results/main --policy gate.toml --junit gate.xml
    """
    from proctor.cli.views.gate import gate_lines, gate_markdown, github_annotations, write_junit
    from proctor.cli.views.page import page_width, print_lines
    from proctor.cli.views.stdout import print_json
    from proctor.comparison.gate_policy import parse_policy
    from proctor.config.toml_file import read_toml

    report = check_runs(parse_policy(read_toml(policy_path)), run, baseline, dirs)
    if junit is not None:
        write_report(junit, write_junit(report))
    if markdown is not None:
        write_report(markdown, gate_markdown(report).encode())
    if as_json:
        print_json(report.document())
    else:
        print_lines(gate_lines(report, page_width()))
    if annotations == "github" or (annotations == "auto" and os.environ.get("GITHUB_ACTIONS") == "true"):
        for line in github_annotations(report):
            echo(line, err=as_json)
    exit_process(EXIT_CODES[report.outcome])


def check_runs(policy: GatePolicy, run: str, baseline: str | None, dirs: Sequence[str]) -> GateReport:
    """The verdict on every environment that the run's word names."""
    from proctor.cli.commands.compared_sides import MatchedSides, SideMatch, match_sides, read_side
    from proctor.cli.views.gate import GatedPair, GateReport
    from proctor.comparison.gate import GateInput, decide_gate

    ours = read_side(run, dirs, summaries=True)
    if baseline is None:
        groups = ours.groups("environment", "model", "label").values()
        match = SideMatch([MatchedSides((), tuple(group)) for group in groups])
    else:
        match = match_sides(read_side(baseline, dirs), ours)
    alone = [MatchedSides((), runs) for runs in match.only_candidate.values()]
    gated = []
    for pair in (*match.pairs, *alone):
        given = GateInput(
            candidate=[each.scores for each in pair.candidate],
            summaries=[each.summary for each in pair.candidate if each.summary is not None],
            baseline=[each.scores for each in pair.baseline],
        )
        gated.append(GatedPair(decide_gate(policy, given), pair.words))
    measured = {pair.result.environment for pair in gated}
    named = [rule.environment for rule in policy.rules if rule.environment is not None]
    return GateReport(
        gated,
        {
            **{name: "a rule is about it" for name in named if name not in measured},
            **dict.fromkeys(match.only_baseline, "the baseline has it"),
        },
    )


def write_report(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {describe_os_error(error)}.") from error
