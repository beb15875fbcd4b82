"""`proctor trace`: one rollout in full, and where two of them diverge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

from proctor.cli.commands.shared_options import dir_option, json_option
from proctor.cli.options import complete_parameter
from proctor.cli.views.stdout import print_json
from proctor.errors import ConfigError, StoreError
from proctor.store.alignment import compare_rollouts
from proctor.store.replay import decode_replay

if TYPE_CHECKING:
    from proctor.store.index import StoredRun
    from proctor.store.replay import RolloutReplay
    from proctor.store.traces import StoredTrace


class TraceGroup(click.Group):
    """`proctor trace ID …` means `proctor trace show ID …`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.list_commands(ctx), *ctx.help_option_names):
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        runs = show_command.params[0].shell_complete(ctx, incomplete)
        return [*super().shell_complete(ctx, incomplete), *runs]


@click.group("trace", cls=TraceGroup)
def trace_group() -> None:
    """Show one rollout in full, or where two diverge.

    A rollout is named RUN/TASK/NUMBER, as `proctor jobs RUN` lists it. RUN may be the beginning of an id, a
    folder, 'latest', or the whole id of a run on the server; NUMBER may be left out where there is only one.

    \b
    proctor trace 1a2b/7/0
    proctor trace latest/7
    proctor trace run-0f3a9c2b1d/7/0
    proctor trace diff 1a2b/7/0 1a2b/7/1
    """


@trace_group.command("show", short_help="Show one rollout; you may omit the word.")
@click.argument("run", metavar="RUN/TASK/NUMBER", shell_complete=complete_parameter)
@click.option("--full", is_flag=True, help="Show long texts in full.")
@click.option(
    "--raw-calls", is_flag=True, help="Also show what each model call sent beyond the conversation."
)
@dir_option
@json_option
def show_command(run: str, full: bool, raw_calls: bool, dirs: tuple[str, ...], as_json: bool) -> None:
    """Show one rollout: its conversation, score, timing and tokens. You may omit `show`."""
    from proctor.cli.views import page

    with open_trace_or_fail(run, dirs) as (found, stored):
        if as_json:
            print_json(msgspec.Raw(found.raw))
            return
        from proctor.cli.views.trace import trace_lines

        seen = load_replay(found)
        width = page.page_width()
        page.print_lines(trace_lines(found.id, stored, seen, width, full=full, raw_calls=raw_calls))


@trace_group.command("diff", short_help="Show where two rollouts diverge.")
@click.argument("run", metavar="A", shell_complete=complete_parameter)
@click.argument("other", metavar="B", shell_complete=complete_parameter)
@click.option("--full", is_flag=True, help="Show long texts in full.")
@dir_option
@json_option
def diff_command(run: str, other: str, full: bool, dirs: tuple[str, ...], as_json: bool) -> None:
    """Align two rollouts message by message and show where they first diverge, and both sides after it."""
    from proctor.cli.views import page
    from proctor.cli.views.diff import diff_document, diff_lines

    with open_trace_or_fail(run, dirs) as (one, its_run), open_trace_or_fail(other, dirs) as (two, their_run):
        comparison = compare_rollouts(load_replay(one), load_replay(two))
        if as_json:
            print_json(diff_document(one.id, two.id, comparison))
            return
        heads = [(one.id, its_run), (two.id, their_run)]
        page.print_lines(diff_lines(heads, comparison, page.page_width(), full=full))


@contextmanager
def open_trace_or_fail(word: str, dirs: tuple[str, ...]) -> Iterator[tuple[StoredTrace, StoredRun]]:
    from proctor.cli.commands.hosted_export import open_trace

    try:
        with open_trace(word, dirs) as opened:
            yield opened
    except StoreError as error:
        raise ConfigError(str(error)) from error


def load_replay(found: StoredTrace) -> RolloutReplay:
    try:
        return decode_replay(found.raw)
    except StoreError as error:
        raise ConfigError(f"{found.id}: {error}") from error
