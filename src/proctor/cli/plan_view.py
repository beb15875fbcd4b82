"""The settings of a run, and the plan of one that is not started, as text."""

from __future__ import annotations

import click
import msgspec
from rich.console import Console
from rich.text import Text

from proctor.cli.printing import pairs, printed, section
from proctor.engine.plan import Plan
from proctor.evaluation import Prepared
from proctor.execution import read_tasks


def show_plan(prepared: Prepared, *, as_json: bool) -> None:
    """What would be run, without calling anybody."""
    config, endpoint = prepared.config, prepared.endpoint
    plan = Plan(tasks=read_tasks(prepared), rollouts_per_task=config.rollouts_per_example)
    planned = plan.planned
    document = {
        "config": config,
        "endpoint": endpoint,
        "origins": prepared.origins,
        "environment": prepared.provenance,
        "selection": prepared.selection(),
        "planned_rollouts": planned,
    }
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(document, enc_hook=str)).decode())
        return
    with printed() as console:
        write_plan(console, prepared, planned)


def write_plan(console: Console, prepared: Prepared, planned: int | None) -> None:
    config = prepared.config
    heading = f"{config.env_id} · {prepared.endpoint.model}   dry run: nobody is called"
    console.print(Text(heading, style="bold"))
    console.print()
    section(console, "Settings", settings_rows(prepared))
    rollouts = "unknown until the tasks have been read" if planned is None else f"{planned:,}"
    section(console, "Plan", [("rollouts", rollouts), ("scored", scoring_text(prepared))])
    settings = msgspec.to_builtins(config)
    section(
        console,
        "Every setting",
        [
            (name, f"{value!r}   ({prepared.origins.get(name, 'built-in default')})")
            for name, value in settings.items()
        ],
    )


def scoring_text(prepared: Prepared) -> str:
    how = "by group" if prepared.grouped else "one by one"
    when = "after all were played" if prepared.config.no_interleave_scoring else "as soon as they were played"
    return f"{how}, {when}"


def settings_rows(prepared: Prepared) -> list[tuple[str, str]]:
    config, endpoint = prepared.config, prepared.endpoint
    rows = [
        ("endpoint", f"{endpoint.url or 'in this process'} ({endpoint.client_type})"),
        ("tasks", f"{prepared.selection()}, {config.rollouts_per_example} rollouts each"),
        ("sampling", pairs(config.sampling()) or "model defaults"),
    ]
    if config.env_args:
        rows.append(("arguments", pairs(config.env_args)))
    if config.extra_env_kwargs:
        rows.append(("set on it", pairs(config.extra_env_kwargs)))
    rows.append(
        (
            "at once",
            (
                f"{config.max_concurrent} rollouts; {config.max_retries} retries; "
                f"{config.timeout:g} s a rollout, {config.scoring_timeout:g} s to score"
            ),
        )
    )
    origin = sorted(f"{name} from {source}" for name, source in prepared.origins.items() if source != "flag")
    if origin:
        rows.append(("defaults", "; ".join(origin)))
    return rows
