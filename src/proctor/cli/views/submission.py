"""What a submission would play, as text for a confirmation. Knows nothing of where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.cli.views.escape import echo, strip_escapes
from proctor.cli.views.hosted_runs import estimate_text

LABEL_WIDTH = 10
SHOWN_DIGITS = 12


def show_summary(summary: Mapping[str, Any], warnings: Sequence[str]) -> None:
    commit = f"{summary['commit_sha'][:SHOWN_DIGITS]} on {summary['branch'] or 'no branch'}"
    rows = (
        ("rollout", summary["rollout"]),
        ("model", summary["model"]),
        ("dataset", summary["dataset"]),
        ("rows", f"{summary['rows']:,}: {summary['selected']}"),
        ("attempts", f"{summary['attempts']:,}, {summary['attempts_per_row']} per row"),
        ("commit", f"{commit}: {summary['subject']}" if summary["subject"] else commit),
        ("cost", estimate_text(summary["estimate"]) or summary["estimate"].basis),
    )
    for label, value in rows:
        echo(f"{label:<{LABEL_WIDTH}}{strip_escapes(str(value))}", err=True)
    for warning in warnings:
        echo(f"Warning: {strip_escapes(warning)}", err=True)
