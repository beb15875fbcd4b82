"""`proctor eval`: read words, run one evaluation, show what it came to."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import Coroutine
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from proctor.cli.options import given, settings_options
from proctor.config.schema import EvalConfig, Presentation
from proctor.errors import ConfigError
from proctor.evaluation import Control, Prepared, Result, prepare, run

if TYPE_CHECKING:
    from proctor.cli.display import LiveDisplay
    from proctor.cli.plain import PlainDisplay

T = TypeVar("T")

LEAVING_SECONDS = 3.0
EXIT_FAILED = 1
EXIT_STOPPED = 5
EXIT_INTERRUPTED = 130


class EvalGroup(click.Group):
    """`proctor eval X …` means `proctor eval run X …`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if first and first not in self.commands and first not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("eval", cls=EvalGroup, context_settings={"help_option_names": ["-h", "--help"]})
def eval_group() -> None:
    """Evaluate a model on an environment."""


@eval_group.command("run")
@click.argument("env_id", metavar="ENVIRONMENT")
@settings_options(EvalConfig, Presentation)
def run_command(**values: Any) -> None:
    """Evaluate a model on ENVIRONMENT: an installed package, a folder in ./environments, or a path.

    \b
    proctor eval run echo -m scripted -n 3
    proctor eval run my-env -m openai/gpt-4.1-mini -n 10 -r 3 -s
    """
    shown = Presentation(**given(values, Presentation))
    if shown.disable_tui and shown.fullscreen:
        raise ConfigError("-d turns the live display off and -f makes it fill the screen; give one of them.")
    configure_logging(shown.verbose)
    with redirect_stdout(sys.stderr):  # what an environment prints is no result
        prepared = prepare(given(values, EvalConfig), os.environ)
    if shown.dry_run:
        from proctor.cli.plan_view import show_plan

        show_plan(prepared, as_json=shown.json)
        return
    if prepared.endpoint.why:
        click.echo(f"Model {prepared.endpoint.model}: {prepared.endpoint.why}.", err=True)
    with redirect_stdout(sys.stderr):
        result, interrupted = watch(prepared, shown)
    show(result, prepared, shown)
    leave(exit_code(result, prepared.config.min_coverage, interrupted))


def watch(prepared: Prepared, shown: Presentation) -> tuple[Result, bool]:
    """Run with a display; the first Ctrl-C lets what is in flight finish, the second leaves at once."""
    raise_file_limit()
    calm_collector()
    control = Control()
    interrupts = Interrupts(control)

    async def main() -> Result:
        from proctor.cli.displays import choose_display
        from proctor.cli.progress import Shown

        interrupts.listen()
        display = choose_display(
            [Shown(settings_shown(prepared), control)],
            disabled=shown.disable_tui,
            fullscreen=shown.fullscreen,
        )
        interrupts.display = display
        async with display:
            return await run(prepared, [display.listener(0)], control=control, resume=shown.resume)

    try:
        return run_in_loop(main()), interrupts.by_hand
    except asyncio.CancelledError:  # left before the first rollout
        sys.exit(EXIT_INTERRUPTED if interrupts.by_hand else EXIT_STOPPED)


def run_in_loop(main: Coroutine[Any, Any, T]) -> T:
    """Like asyncio.run, but a thread that is stuck in somebody's code keeps nobody from leaving."""
    loop = new_event_loop()
    try:
        return loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=LEAVING_SECONDS))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


class Interrupts:
    """What Ctrl-C does, and SIGTERM likewise."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self.count = 0
        self.by_hand = False
        """Somebody pressed Ctrl-C, as against a machine that wants its place back."""
        self.display: LiveDisplay | PlainDisplay | None = None
        self.main: asyncio.Task[Any] | None = None

    def listen(self) -> None:
        self.main = asyncio.current_task()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self.happened, True)
        loop.add_signal_handler(signal.SIGTERM, self.happened, False)

    def happened(self, by_hand: bool) -> None:
        self.count += 1
        self.by_hand = self.by_hand or by_hand
        if self.count == 1:
            self.control.stop()
        elif self.count == 2 and self.control.playing is not None:
            self.control.leave()
        elif self.count == 2 and self.main is not None:
            self.main.cancel()
        else:
            if self.display is not None:
                self.display.close()
            os._exit(EXIT_INTERRUPTED)


def show(result: Result, prepared: Prepared, shown: Presentation) -> None:
    """Results on stdout, where they are kept on stderr."""
    if shown.json:
        click.echo(msgspec.json.format(msgspec.json.encode(as_document(result))).decode())
    else:
        from proctor.cli.report_view import show_report

        show_report(result, prepared, examples=not shown.abbreviated_summary)


def as_document(result: Result) -> dict[str, Any]:
    return {"run": result.run, "folder": str(result.folder), "summary": result.summary}


def exit_code(result: Result, min_coverage: float, interrupted: bool) -> int:
    if interrupted:
        return EXIT_INTERRUPTED
    if result.run.status == "stopped":
        return EXIT_STOPPED
    coverage = result.summary.coverage
    if result.run.status != "finished" or coverage is None or coverage < min_coverage:
        return EXIT_FAILED
    return 0


def leave(code: int) -> None:
    """Exit, without waiting for threads that are stuck in somebody's code."""
    stuck = [thread for thread in threading.enumerate() if not thread.daemon]
    if len(stuck) > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def settings_shown(prepared: Prepared) -> list[tuple[str, str]]:
    config, endpoint = prepared.config, prepared.endpoint
    tasks = "all" if config.num_examples == -1 else str(config.num_examples)
    rows = [
        ("environment", config.env_id),
        ("model", endpoint.model),
        ("endpoint", endpoint.url or endpoint.client_type),
        ("tasks × rollouts", f"{tasks} × {config.rollouts_per_example}"),
        ("at once", str(config.max_concurrent)),
    ]
    sampling = ", ".join(f"{name} {value}" for name, value in config.sampling().items())
    if sampling:
        rows.append(("sampling", sampling))
    if config.env_args:
        rows.append(("arguments", msgspec.json.encode(config.env_args).decode()))
    return rows


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # not made for this platform
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def raise_file_limit() -> None:
    """Every request in flight holds a socket; the usual soft limit is for interactive shells."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):
            return


def calm_collector() -> None:
    """What was imported stays, and rollouts leave few cycles: look for garbage less often."""
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)


def configure_logging(verbose: bool) -> None:
    logging.getLogger("proctor").setLevel(logging.DEBUG if verbose else logging.INFO)
    if verbose:
        logging.getLogger().setLevel(logging.INFO)
