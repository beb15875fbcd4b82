"""What an evaluation will take, as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text

from proctor.cli.views.escape import strip_escapes
from proctor.cli.views.formatting import (
    format_dollars,
    format_duration,
    format_quantity,
    format_short_count,
)
from proctor.cli.views.printing import open_console, print_section
from proctor.evaluation.forecast import Forecast
from proctor.stats.prediction import PredictedTotal


def show_forecasts(forecasts: Sequence[Forecast]) -> None:
    with open_console() as console:
        for each in forecasts:
            console.print(Text(strip_escapes(f"{each.environment} · {each.model}"), style="bold"))
            console.print()
            print_section(console, "Will take", forecast_rows(each))
            reuse = f"The pilot is run {each.pilot}; `proctor eval run … --reuse {each.pilot}` takes it over."
            console.print(Text(f"{reuse}\n", style="dim"), soft_wrap=True)


def forecast_rows(each: Forecast) -> list[tuple[str, str]]:
    rollouts = each.tasks * each.rollouts_per_task
    size = f"{format_quantity(rollouts, 'rollout')}: {format_quantity(each.tasks, 'task')}"
    cost = "not known: the model has no price"
    if each.cost_usd is not None:
        without = f", without {', '.join(each.unpriced_models)}" if each.unpriced_models else ""
        cost = range_text(each.cost_usd, format_dollars) + without
    at_once = format_quantity(each.at_once, "rollout")
    basis = (
        f"{format_quantity(each.pilot_rollouts, 'rollout')} of {format_quantity(each.pilot_tasks, 'task')}"
    )
    return [
        ("rollouts", f"{size}, {each.rollouts_per_task} each"),
        ("tokens in", range_text(each.input_tokens, format_short_count)),
        ("tokens out", range_text(each.output_tokens, format_short_count)),
        ("cost", cost),
        ("time", f"{range_text(each.wall_seconds, format_duration)}, with {at_once} at once"),
        ("from", f"{basis}; ranges hold in {each.level:.0%} of cases"),
    ]


def range_text(total: PredictedTotal, show: Callable[[float], str]) -> str:
    if total.low is None or total.high is None:
        return f"about {show(total.likely)} (one task tells no range)"
    return f"about {show(total.likely)} ({show(total.low)} to {show(total.high)})"
