"""The settings of a run, and what `--dry-run` shows of one that is not started, as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec
from rich.console import Console
from rich.text import Text

from proctor.cli.views.formatting import format_pairs, format_quantity
from proctor.cli.views.printing import open_console, print_section
from proctor.cli.views.resolved import at_once_text, sampling_text, workers_text
from proctor.cli.views.stdout import print_json
from proctor.config import headers
from proctor.config.endpoints import Endpoint
from proctor.config.schema import EvalConfig
from proctor.engine.plan import Plan
from proctor.evaluation.evaluate import Prepared
from proctor.evaluation.read_tasks import read_tasks
from proctor.evaluation.resolved import resolve_settings

Sent = TypeVar("Sent", EvalConfig, Endpoint)
"""What holds headers."""


def show_dry_runs(all_prepared: Sequence[Prepared], *, as_json: bool) -> None:
    """One evaluation in full, or each of several with what sets it apart."""
    planned = [count_planned_rollouts(prepared) for prepared in all_prepared]
    if as_json:
        documents = [dry_run_document(*each) for each in zip(all_prepared, planned, strict=True)]
        document = documents[0] if len(documents) == 1 else {"evaluations": documents}
        print_json(document)
        return
    with open_console() as console:
        if len(all_prepared) == 1:
            write_dry_run(console, all_prepared[0], planned[0])
        else:
            write_overview(console, all_prepared, planned)


def count_planned_rollouts(prepared: Prepared) -> int | None:
    return Plan(tasks=read_tasks(prepared), rollouts_per_task=prepared.config.rollouts_per_example).planned


def count_tasks(prepared: Prepared, planned: int | None) -> int | None:
    return None if planned is None else planned // prepared.config.rollouts_per_example


def dry_run_document(prepared: Prepared, planned: int | None) -> dict[str, Any]:
    return {
        "config": without_secrets(prepared.config),
        "endpoint": without_secrets(prepared.endpoint),
        "origins": prepared.origins,
        "environment": prepared.provenance,
        "selection": prepared.selection(count_tasks(prepared, planned)),
        "resolved": resolve_settings(prepared, count_tasks(prepared, planned)),
        "workers": prepared.workers(),
        "planned_rollouts": planned,
    }


def without_secrets(sent: Sent) -> Sent:
    """The same, but of headers with a key in them only the names."""
    sent = msgspec.structs.replace(sent, headers=headers.redact_headers(sent.headers))
    if isinstance(sent, Endpoint):
        sent = msgspec.structs.replace(sent, replicas=tuple(map(without_secrets, sent.replicas)))
    return sent


def write_overview(console: Console, all_prepared: Sequence[Prepared], planned: Sequence[int | None]) -> None:
    known = [count for count in planned if count is not None]
    total = f"{sum(known):,}" if len(known) == len(planned) else f"{sum(known):,} and more"
    console.print(
        Text(f"{len(all_prepared)} evaluations, {total} rollouts   dry run: no model is called", style="bold")
    )
    console.print()
    for number, (prepared, count) in enumerate(zip(all_prepared, planned, strict=True), start=1):
        config = prepared.config
        rollouts = "unknown until the tasks have been read" if count is None else f"{count:,}"
        named = "   ".join(part for part in (prepared.name, prepared.endpoint.model, config.label) if part)
        rows = [
            *settings_rows(prepared, count_tasks(prepared, count)),
            ("rollouts", f"{rollouts}, scored {scoring_text(prepared)}"),
            ("said in", describe_origins(prepared.origins.values())),
        ]
        print_section(console, f"{number}. {named}", [row for row in rows if row[1]])


def describe_origins(origins: Iterable[str]) -> str:
    """'suite.toml, lines 5–9 and 12', of settings that are in a file."""
    lines: dict[str, set[int]] = {}
    for origin in origins:
        file, _, line = origin.rpartition(":")
        if file and line.isdecimal():
            lines.setdefault(file, set()).add(int(line))
    return "; ".join(f"{file}, {format_line_ranges(sorted(numbers))}" for file, numbers in lines.items())


def format_line_ranges(numbers: Sequence[int]) -> str:
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    *others, last = ["–".join(map(str, each)) for each in ranges]
    text = f"{', '.join(others)} and {last}" if others else last
    return f"line {text}" if len(numbers) == 1 else f"lines {text}"


def write_dry_run(console: Console, prepared: Prepared, planned: int | None) -> None:
    config = prepared.config
    heading = f"{prepared.name} · {prepared.endpoint.model}   dry run: no model is called"
    console.print(Text(heading, style="bold"))
    console.print()
    print_section(console, "Settings", settings_rows(prepared, count_tasks(prepared, planned)))
    rollouts = "unknown until the tasks have been read" if planned is None else f"{planned:,}"
    print_section(console, "To play", [("rollouts", rollouts), ("scored", scoring_text(prepared))])
    settings = msgspec.to_builtins(without_secrets(config))
    print_section(
        console,
        "Every setting",
        [
            (name, f"{value!r}   ({prepared.origins.get(name, 'built-in default')})")
            for name, value in settings.items()
        ],
    )


def scoring_text(prepared: Prepared) -> str:
    how = "by group" if prepared.grouped else "one by one"
    when = (
        "after all were played"
        if prepared.config.no_interleave_scoring
        else "as soon as they have been played"
    )
    return f"{how}, {when}"


def selection_text(prepared: Prepared, tasks: int | None) -> str:
    rollouts = format_quantity(prepared.config.rollouts_per_example, "rollout")
    return f"{prepared.selection(tasks)}, {rollouts} each"


def agent_text(prepared: Prepared) -> str:
    if prepared.agent is None:
        return ""
    steps = prepared.config.max_steps
    return f"{prepared.config.agent}" + (f", at most {steps} steps" if steps is not None else "")


def recipe_rows(prepared: Prepared) -> list[tuple[str, str]]:
    """What a recipe is about, rather than the arguments that it is translated into."""
    known = prepared.provenance
    dataset = known.get("dataset") or {}
    commit = known.get("git_commit") or ""
    return [
        ("recipe", prepared.config.config_hash),
        ("rollout", f"{known.get('rollout')}/{known.get('entrypoint')}"),
        ("commit", f"{commit[:12]}{', with changes' if commit.endswith('+') else ''}"),
        ("dataset", f"{dataset.get('name')} (SHA-256 {str(dataset.get('sha256'))[:12]}…)"),
    ]


def settings_rows(prepared: Prepared, tasks: int | None) -> list[tuple[str, str]]:
    """`tasks` is how many are evaluated, if that is known."""
    config, endpoint = prepared.config, prepared.endpoint
    used = resolve_settings(prepared, tasks)
    rows = [
        ("endpoint", f"{endpoint.address or 'in this process'} ({endpoint.client_type})"),
        ("agent", agent_text(prepared)),
        ("runtime", config.runtime or ""),
        ("chosen", config.label),
        ("tasks", selection_text(prepared, tasks)),
        ("sampling", sampling_text(prepared, used) or "model defaults"),
    ]
    if config.config_hash:
        rows += recipe_rows(prepared)
    elif config.env_args:
        rows.append(("arguments", format_pairs(config.env_args)))
    if config.agent_args:
        rows.append(("agent's own", format_pairs(config.agent_args)))
    if config.runtime_args:
        rows.append(("runtime's own", format_pairs(config.runtime_args)))
    if config.extra_env_kwargs:
        rows.append(("set on it", format_pairs(config.extra_env_kwargs)))
    rows += prepared.provenance.get("workspace_limits", {}).items()
    count, _, where = workers_text(config, used).partition(" ")
    workers = f" in {count} worker processes {where}".rstrip() if count else ""
    rows.append(
        (
            "at once",
            (
                f"{at_once_text(used)}{workers}; {config.max_retries} retries; "
                f"{config.start_timeout:g} s to start, {config.timeout:g} s to play, "
                f"{config.scoring_timeout:g} s to score"
            ),
        )
    )
    if defaults := prepared.package_defaults.items():
        rows.append(("defaults", "; ".join(sorted(f"{name} from {source}" for name, source in defaults))))
    return [(label, value) for label, value in rows if value]
