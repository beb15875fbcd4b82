"""`proctor eval list|info|logs|samples|stop|resume|edit|share|delete|wait`: the runs on a server.

Each command reads its arguments, calls the server once, and shows the answer. Everything heavy is loaded when
a command is called.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
import msgspec

from proctor.api.people import Whoami
from proctor.api.runs import Events, ResumeRequest, RunEdit, RunSharing, RunVisibility, RunVisibilityChange
from proctor.cli.commands.server_calls import call_for_run, call_server
from proctor.cli.commands.shared_options import FiniteRange, confirm, json_option, limit_option, yes_option
from proctor.cli.exits import exit_process, hosted_exit_code
from proctor.cli.views.escape import echo
from proctor.cli.views.stdout import ignore_closed_pipe, print_json, print_json_line
from proctor.config.experiment import read_recipe
from proctor.errors import ConfigError
from proctor.projects.checkout import find_own_repository
from proctor.run import ENDED, RunStatus
from proctor.store.export import ExportRow
from proctor.task import TaskId

if TYPE_CHECKING:
    from proctor.api.rollout_list import TaskGroup
    from proctor.api.runs import RunEvent, RunInfo
    from proctor.client.connection import ServerConnection

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

SHOWN_RUNS, SHOWN_SAMPLES = 20, 10
EXIT_NOT_YET = 124
"""`wait --timeout` is over, and the run is not."""

run_argument = click.argument("run_id", metavar="ID|NAME")
linked_run_argument = click.argument("run_id", metavar="ID|NAME|LINK")
runs_argument = click.argument("run_ids", metavar="ID|NAME...", nargs=-1, required=True)


# Reading


@click.command("list")
@click.option("-e", "--env", "environment", metavar="OWNER/NAME", help="Only runs of this environment.")
@click.option("--status", type=click.Choice(get_args(RunStatus)), help="Only runs in this state.")
@click.option("-m", "--model", help="Only runs of this model.")
@click.option("--kind", type=click.Choice(("hosted", "local")), help="Played by the server, or uploaded.")
@click.option("--team", help="Only runs of this team.")
@click.option("--tag", help="Only runs with this tag.")
@click.option("--mine", is_flag=True, help="Only runs that you started.")
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Only runs of this recipe.")
@click.option(
    "--all", "everywhere", is_flag=True, help="Also runs that were not submitted from this repository."
)
@limit_option(SHOWN_RUNS)
@json_option
def list_command(
    most: int, as_json: bool, mine: bool, config: Path | None, everywhere: bool, **wanted: Any
) -> None:
    """List the runs on the server, the newest first.

    In a repository of rollouts, list those submitted from it; with --all, list every run.

    \b
    proctor eval list --mine --status running
    proctor eval list --config configs/eval/my-rollout.toml
    proctor eval list -e ada/gsm8k -n 5 --json
    """
    from proctor.client import runs

    if config is not None:
        wanted["config_hash"] = read_recipe(config).recipe.hash
    elif not everywhere and (repository := find_own_repository(Path())):
        wanted["repository"] = repository

    async def fetch_runs(server: ServerConnection) -> tuple[list[RunInfo], bool]:
        owner = (await server.get("/whoami", Whoami)).user.name if mine else None
        return await runs.list_runs(server, runs.RunFilter(**wanted, owner=owner), None if most < 0 else most)

    found, more = call_server(fetch_runs)
    if as_json:
        print_json({"runs": found, "more": more})
    elif not found:
        where = f" from {wanted['repository']}; --all shows others" if wanted.get("repository") else ""
        echo(f"No matching runs{where}; start one with proctor eval submit or eval run --hosted.", err=True)
    else:
        from proctor.cli.views import page
        from proctor.cli.views.run_list import run_lines

        page.print_lines(run_lines(found, more, page.page_width()))


@click.command("info")
@linked_run_argument
@json_option
def info_command(run_id: str, as_json: bool) -> None:
    """Show one run on the server: its status, its cost and, once it has ended, its report.

    Instead of an id, pass a link by which a run was shared.
    """
    from proctor.client import runs

    async def read(server: ServerConnection, run_id: str) -> tuple[RunInfo, str]:
        return await runs.read_run(server, run_id), server.context.url

    show_run_or_json(*call_for_run(run_id, read), as_json)


@click.command("logs")
@run_argument
@click.option("-f", "--follow", is_flag=True, help="Wait for more, until the run has ended.")
@click.option("-n", "--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines.")
@click.option(
    "--after", type=click.IntRange(min=0), default=0, metavar="SEQ", help="Only events after this number."
)
@click.option(
    "--poll-interval",
    type=FiniteRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="Seconds between polls when the server's event stream is unavailable.",
)
@json_option
def logs_command(
    run_id: str, follow: bool, tail: int | None, after: int, poll_interval: float, as_json: bool
) -> None:
    """Print a run's log. With --json, print one numbered event per line.

    With -f, no event is lost or repeated if the server or the network goes away for a while; Ctrl-C does not
    stop the run.
    """
    from proctor.client.follow import FollowTimings
    from proctor.client.follow import follow as follow_run

    async def print_events(server: ServerConnection, run_id: str) -> None:
        notify = _print_to_stderr
        patience = FollowTimings(poll=poll_interval)
        source = (
            follow_run(server, run_id, after, patience=patience, notify=notify)
            if follow and tail is None
            else _iterate_events(server, run_id, after)
        )
        kept: deque[RunEvent] = deque(maxlen=tail)
        last = after
        async for event in source:
            last = event.seq
            if tail is not None:
                if as_json or _is_logged(event):
                    kept.append(event)
            else:
                _print_event(event, as_json)
        for event in kept:
            _print_event(event, as_json)
        if follow and tail is not None:
            async for event in follow_run(server, run_id, last, patience=patience, notify=notify):
                _print_event(event, as_json)

    with ignore_closed_pipe():
        call_for_run(run_id, print_events)


async def _iterate_events(server: ServerConnection, run_id: str, after: int) -> AsyncIterator[RunEvent]:
    """Every event so far."""
    from proctor.client.runs import run_path

    while True:
        news = await server.get(f"{run_path(run_id)}/events", Events, after=after)
        for event in news.items:
            yield event
        if not news.items or news.items[-1].seq >= news.last_seq:
            return
        after = news.items[-1].seq


def _is_logged(event: RunEvent) -> bool:
    return event.kind in ("log", "status")


def _print_event(event: RunEvent, as_json: bool) -> None:
    from proctor.cli.views.hosted_runs import event_text

    if as_json:
        print_json_line(event)
    elif _is_logged(event):
        echo(event_text(event))


def _print_to_stderr(text: str) -> None:
    echo(text, err=True)


@click.command("samples")
@linked_run_argument
@limit_option(SHOWN_SAMPLES)
@click.option("--failed", is_flag=True, help="Only rollouts that were not scored.")
@click.option("--task", metavar="ID", help="Only rollouts of this task.")
@click.option("--grouped", is_flag=True, help="One line per task: the mean and spread of its rewards.")
@click.option("--full", is_flag=True, help="Show long texts in full.")
@json_option
def samples_command(
    run_id: str, most: int, failed: bool, task: str | None, grouped: bool, full: bool, as_json: bool
) -> None:
    """Show rollouts of a run in task order: prompt, completion and reward.

    A task that was played several times is headed by the mean and spread of its rewards; --grouped shows only
    those.
    """
    from proctor.client import runs

    if grouped:
        if failed or full:
            raise ConfigError("--grouped shows no rollouts; leave out --failed and --full.")
        show_task_results(run_id, most, task, as_json)
        return

    async def fetch_rows(
        server: ServerConnection, run_id: str
    ) -> tuple[list[msgspec.Raw], dict[TaskId, TaskGroup]]:
        rows = runs.iterate_rows(server, run_id, failed=failed, task=task, order="task")
        found = await take_first(rows, most)
        repeated = find_repeated_tasks(found)
        if not repeated or as_json:
            return found, {}
        results = runs.iterate_task_groups(server, run_id, task)
        return found, {result.task: result async for result in results if result.task in repeated}

    found, results = call_for_run(run_id, fetch_rows)
    if as_json:
        print_json({"run": run_id, "samples": found})
    elif not found:
        echo("No matching rollouts yet.", err=True)
    else:
        from proctor.cli.views import page
        from proctor.cli.views.hosted_runs import grouped_sample_lines

        rows = (msgspec.json.decode(raw, type=ExportRow) for raw in found)
        page.print_lines(grouped_sample_lines(rows, results, full=full, width=page.page_width()))


def show_task_results(run_id: str, most: int, task: str | None, as_json: bool) -> None:
    from proctor.cli.views import page
    from proctor.cli.views.hosted_runs import task_result_lines
    from proctor.client import runs

    async def fetch(server: ServerConnection, run_id: str) -> list[TaskGroup]:
        return await take_first(runs.iterate_task_groups(server, run_id, task), most)

    found = [msgspec.structs.replace(group, entries=[]) for group in call_for_run(run_id, fetch)]
    if as_json:
        print_json({"run": run_id, "tasks": found})
    elif not found:
        echo("No matching rollouts yet.", err=True)
    else:
        page.print_lines(task_result_lines(found, page.page_width()))


async def take_first(items: AsyncIterator[T], most: int) -> list[T]:
    found: list[T] = []
    async for item in items:
        if len(found) == most:
            break
        found.append(item)
    return found


def find_repeated_tasks(rows: Sequence[msgspec.Raw]) -> set[TaskId]:
    """The tasks with several rollouts among these rows."""
    counts = Counter(msgspec.json.decode(raw, type=ExportRow).example_id for raw in rows)
    return {task for task, count in counts.items() if count > 1}


# Acting


@click.command("stop")
@runs_argument
@click.option("--reason", default="", help="Why; stored with the run.")
@yes_option
@json_option
def stop_command(run_ids: tuple[str, ...], reason: str, yes: bool, as_json: bool) -> None:
    """Stop runs: rollouts in flight are dropped, finished ones are kept."""
    from proctor.client import runs

    if confirm(f"Stop {' '.join(run_ids)}?", yes):
        print_statuses(
            for_each_run(run_ids, lambda server, run_id: runs.stop(server, run_id, reason)), as_json
        )


@click.command("resume")
@runs_argument
@click.option("--timeout-minutes", type=click.IntRange(1, 1440), help="A new time limit.")
@click.option("--max-cost", type=FiniteRange(0, min_open=True), help="A new limit on the run's total cost.")
@json_option
def resume_command(
    run_ids: tuple[str, ...], timeout_minutes: int | None, max_cost: float | None, as_json: bool
) -> None:
    """Continue runs that failed, were stopped or timed out; finished rollouts are kept."""
    from proctor.client import runs

    how = ResumeRequest(timeout_minutes=timeout_minutes, max_cost_usd=max_cost)
    print_statuses(for_each_run(run_ids, lambda server, run_id: runs.resume(server, run_id, how)), as_json)


@click.command("delete")
@runs_argument
@yes_option
@json_option
def delete_command(run_ids: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Delete runs from the server, with their logs and results."""
    from proctor.client import runs

    if not confirm(f"Delete {' '.join(run_ids)} for good?", yes):
        return
    for_each_run(run_ids, runs.delete)
    if as_json:
        print_json({"deleted": run_ids})
    else:
        echo(f"Deleted {', '.join(run_ids)}.")


@click.command("edit")
@runs_argument
@click.option("--name", help="A new name.")
@click.option("--note", help="A new note; an empty one removes it.")
@click.option("--tag", "add_tags", multiple=True, metavar="TAG", help="Add this tag. Repeatable.")
@click.option("--untag", "remove_tags", multiple=True, metavar="TAG", help="Remove this tag. Repeatable.")
@json_option
def edit_command(
    run_ids: tuple[str, ...],
    name: str | None,
    note: str | None,
    add_tags: tuple[str, ...],
    remove_tags: tuple[str, ...],
    as_json: bool,
) -> None:
    """Rename runs, change their note, add and remove tags.

    \b
    proctor eval edit run-0123456789 --name "before the fix" --tag baseline
    proctor eval list --tag baseline
    """
    from proctor.cli.views.hosted_runs import edited_text
    from proctor.client import runs

    edit = RunEdit(name=name, note=note, add_tags=list(add_tags), remove_tags=list(remove_tags))
    if edit == RunEdit():
        raise click.UsageError("Say what to change: --name, --note, --tag or --untag.")
    edited = for_each_run(run_ids, lambda server, run_id: runs.edit(server, run_id, edit))
    if as_json:
        print_json({"runs": edited})
        return
    for run in edited:
        echo(edited_text(run))


@click.command("share")
@run_argument
@click.argument("visibility", type=click.Choice(get_args(RunVisibility)), required=False)
@click.option("--new-link", is_flag=True, help="Replace the link; the old one stops working.")
@json_option
def share_command(run_id: str, visibility: RunVisibility | None, new_link: bool, as_json: bool) -> None:
    """Show or change who may read a run.

    \b
    private      you
    team         the members of the run's team
    readers      also everyone who may read its environment
    link         also anyone who has the link that this prints

    Users who may change the environment may read all of its runs.
    """
    from proctor.cli.views.hosted_runs import sharing_text
    from proctor.client import runs

    if new_link and visibility != "link":
        raise click.UsageError("--new-link goes with `link`: proctor eval share ID link --new-link")

    async def change(server: ServerConnection, run_id: str) -> RunSharing:
        if visibility is None:
            return await runs.read_sharing(server, run_id)
        return await runs.share(server, run_id, RunVisibilityChange(visibility=visibility, new_link=new_link))

    sharing = call_for_run(run_id, change)
    print_json(sharing) if as_json else echo(sharing_text(run_id, sharing))


@click.command("wait")
@runs_argument
@click.option(
    "--timeout",
    type=FiniteRange(min=0),
    metavar="SECONDS",
    help="Give up after this long, with exit code 124.",
)
@click.option(
    "--min-coverage",
    type=FiniteRange(0, 1),
    help="Share of rollouts that must be scored for exit code 0.",
)
@json_option
def wait_command(
    run_ids: tuple[str, ...], timeout: float | None, min_coverage: float | None, as_json: bool
) -> None:
    """Wait for runs to end.

    The exit code is 0 for finished, 1 for failed, 5 for stopped, 6 for timed out; the highest of several.
    """
    from proctor.client import runs
    from proctor.client.follow import follow

    async def wait_for_all(server: ServerConnection) -> list[RunInfo]:
        ids = [await runs.resolve_run(server, word) for word in run_ids]

        async def follow_to_end(run_id: str) -> None:
            async for _ in follow(server, run_id, notify=_print_to_stderr):
                pass

        async def follow_all() -> None:
            async with asyncio.TaskGroup() as group:
                for run_id in ids:
                    group.create_task(follow_to_end(run_id))

        found = [await runs.read_run(server, run_id) for run_id in ids]  # fails if one does not exist
        if any(run.status not in ENDED for run in found):
            try:
                await asyncio.wait_for(follow_all(), timeout)
            except TimeoutError:
                pass
            except ExceptionGroup as group:
                raise group.exceptions[0] from None
            found = [await runs.read_run(server, run_id) for run_id in ids]
        return found

    found = call_server(wait_for_all)
    print_statuses(found, as_json)
    if any(run.status not in ENDED for run in found):
        exit_process(EXIT_NOT_YET)
    exit_process(max(hosted_exit_code(run, required_coverage(run, min_coverage)) for run in found))


def required_coverage(run: RunInfo, given: float | None = None) -> float:
    """The run's own minimum, unless you pass another."""
    return given if given is not None else float(run.settings.get("min_coverage", 1.0))


def for_each_run(run_ids: Sequence[str], act: Callable[[ServerConnection, str], Awaitable[T]]) -> list[T]:
    from proctor.client.runs import resolve_run

    async def in_turn(server: ServerConnection) -> list[T]:
        ids = [await resolve_run(server, word) for word in run_ids]
        return [await act(server, run_id) for run_id in ids]

    return call_server(in_turn)


def show_run_or_json(run: RunInfo, url: str, as_json: bool) -> None:
    if as_json:
        print_json(run)
        return
    from proctor.cli.views.hosted_runs import show_run

    show_run(run, url, required_coverage(run))


def print_statuses(found: Sequence[RunInfo], as_json: bool) -> None:
    """Print each run's status on a line."""
    if as_json:
        print_json({"runs": found})
        return
    for run in found:
        cause = f": {run.cause.message}" if run.cause is not None else ""
        echo(f"{run.id} is {run.status}{cause}")
