"""The displays as a user sees them: on a real terminal and in a log file; in tmux see test_tmux.py."""

from __future__ import annotations

import asyncio
import fcntl
import io
import logging
import os
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pyte
import pytest
from rich.cells import cell_len

from proctor.cli.live.display_choice import choose_display
from proctor.cli.live.keys import KeyDecoder
from proctor.cli.live.logs import LogBuffer
from proctor.cli.live.overview import count_visible_rows, overview_lines, scroll_to_selected
from proctor.cli.live.plain import PlainDisplay
from proctor.cli.live.progress import DisplayedRun, RunProgress
from proctor.cli.live.totals import Totals
from proctor.cli.views.escape import one_line
from proctor.cli.views.formatting import format_clock, format_rate, format_short_count, format_short_number
from proctor.errors import Failure
from proctor.evaluation.evaluate import Control, prepare, run
from proctor.events import (
    Event,
    LogLine,
    ModelCalled,
    PlanCounted,
    RolloutRetried,
    RolloutsFinished,
    RolloutStarted,
    RunEnded,
    RunStarted,
)
from proctor.report.lines import RolloutLine
from proctor.report.tally import Tally
from proctor.rollout import Outcome, Rollout, Span, Timing
from proctor.run import Run, RunStatus
from proctor.task import Task
from proctor.trace import ModelCall, Reply, Trace, Usage
from tests.waiting import SECONDS

SHOWN_RUN = Path(__file__).with_name("shown_run.py")

RIGHT = {"text": "say it"}
WRONG = {"text": "no"}
HANGING = {"text": "say it", "delay_seconds": 60}
FAILING = {"error": "refused", "text": "no [red]such[/red] \x1b[2Jmodel,\nask another " + "x" * 300}
HARMLESS = "no [red]such[/red] model, ask another xxx"
TRANSIENT = {"error": "timeout", "text": "too busy"}
SETTINGS = [("environment", "echo"), ("model", "scripted"), ("at once", "32")]


class Terminal:
    """A program on a terminal of a given size, and what its user sees."""

    def __init__(self, command: list[str], environ: dict[str, str], columns: int, lines: int) -> None:
        self.screen = pyte.Screen(columns, lines)
        self.raw = b""
        self._stream = pyte.ByteStream(self.screen)
        self._ours, theirs = os.openpty()
        self._set_size(columns, lines)
        self._theirs = theirs  # kept open, so that its modes can be looked at when the program is gone
        self.program = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, start_new_session=True
        )

    def read(self, seconds: float) -> bool:
        """Show what the program wrote meanwhile, if anything."""
        ready, _, _ = select.select([self._ours], [], [], seconds)
        if not ready:
            return False
        data = os.read(self._ours, 65536)
        self.raw += data
        self._stream.feed(data)
        return True

    def wait_until(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not (self.is_whole() and happened()):
            if time.monotonic() > deadline:
                pytest.fail("this was on the screen:\n" + "\n".join(self.lines()))
            self.read(0.02)

    def is_whole(self) -> bool:
        """Whether no frame is half drawn, which a terminal would not show."""
        return self.raw.rfind(b"\x1b[?2026h") <= self.raw.rfind(b"\x1b[?2026l")

    def wait_for(self, *texts: str) -> None:
        self.wait_until(lambda: all(text in self.text() for text in texts))

    def wait_for_end(self) -> None:
        self.wait_until(lambda: self.program.poll() is not None)
        while self.read(0):
            pass

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        self.screen.resize(lines, columns)
        self._set_size(columns, lines)

    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    def text(self) -> str:
        return "\n".join(self.lines())

    def line_with(self, text: str) -> str:
        (found,) = [line for line in self.lines() if text in line]
        return found

    def fits(self, text: str) -> bool:
        """Whether a line with this text is there, and ends before the last column."""
        return any(text in line and len(line) < self.screen.columns for line in self.lines())

    def color_of(self, text: str) -> str:
        line = next(number for number, shown in enumerate(self.screen.display) if text in shown)
        color: str = self.screen.buffer[line][self.screen.display[line].index(text)].fg
        return color

    def hides_cursor(self) -> bool:
        return bool(self.screen.cursor.hidden)

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self._theirs)[3] & termios.ECHO)

    def close(self) -> None:
        with suppress(ProcessLookupError):
            self.program.kill()
        self.program.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


Show = Callable[..., Terminal]


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return dict(os.environ)


@pytest.fixture
def show(environ: dict[str, str]) -> Iterator[Show]:
    """Starts a run on a terminal."""
    shown: list[Terminal] = []

    def start(*steps: dict[str, Any], size: tuple[int, int] = (80, 24), **scene: Any) -> Terminal:
        terminal = Terminal(command(*steps, **scene), environ, *size)
        shown.append(terminal)
        return terminal

    yield start
    for terminal in shown:
        terminal.close()


def command(*steps: dict[str, Any], **scene: Any) -> list[str]:
    words = msgspec.json.encode({"steps": steps, **scene}).decode()
    return [sys.executable, str(SHOWN_RUN), words]


# The live display


def test_a_user_sees_how_far_a_run_is_what_it_scores_and_what_failed(show: Show) -> None:
    terminal = show(*[RIGHT] * 5, WRONG, *[FAILING] * 2, *[HANGING] * 2)

    terminal.wait_for("8/10", "2 in flight", "0.833")

    assert terminal.line_with("echo") == "echo  with  scripted [bold]model[/bold]"
    assert "80%" in terminal.line_with("8/10")
    assert "6 tasks" in terminal.line_with("score  ")
    assert "repeats 0.833" in terminal.line_with("metrics")
    assert terminal.line_with("tokens  ").split()[1:5] == ["12", "in", "11", "out"]
    assert "6 scored" in terminal.line_with("outcomes")
    assert terminal.color_of("2 model error") == "red"
    assert HARMLESS in terminal.line_with("last error")
    assert terminal.line_with("RequestRefusedError").endswith("…")


def test_a_screen_of_80_by_24_holds_everything_without_wrapping(show: Show) -> None:
    terminal = show(*[RIGHT] * 5, FAILING, HANGING, warns={"say it": "a " + "long " * 50 + "warning"})

    terminal.wait_for("6/7", "last error", "WARNING")

    starts = [line.split("  ")[0] for line in terminal.lines() if line]
    assert starts[:3] == ["before", "echo", "endpoint http://127.0.0.1:8000/v1"]
    assert starts[5:11] == ["score", "metrics", "rollouts", "tokens", "outcomes", "last error"]
    assert all("WARNING a long long" in line and line.endswith("…") for line in starts[11:])
    assert len(starts[11:]) == 5
    assert max(map(len, terminal.lines())) < 80


def test_a_first_ctrl_c_is_acknowledged_and_a_second_leaves_a_clean_terminal(show: Show) -> None:
    terminal = show(RIGHT, FAILING, *[HANGING] * 3)
    terminal.wait_for("2/5", "3 in flight")
    assert (terminal.hides_cursor(), terminal.echoes()) == (True, False)

    terminal.type("\x03")
    terminal.wait_for("Stopping: 3 rollouts in flight will finish; Ctrl-C again leaves at once.")
    assert " left" not in terminal.text()
    terminal.type("\x03")
    terminal.wait_for_end()

    assert [line for line in terminal.lines() if line] == ["before", "left", "after"]
    assert (terminal.hides_cursor(), terminal.echoes()) == (False, True)


def test_prints_stay_above_the_display_and_warnings_outlive_it(show: Show) -> None:
    last = {"text": "last", "delay_seconds": 1}
    terminal = show(
        RIGHT,
        WRONG,
        last,
        prints={"no": "printed [i]by\x1b[2J the[/i]\nenvironment\n"},
        warns={"say it": "mind"},
    )

    terminal.wait_for("printed", "2/3")
    shown = [line for line in terminal.lines() if line]
    assert shown[:4] == ["before", "printed [i]by the[/i]", "environment", terminal.line_with("  with  ")]
    terminal.wait_for_end()

    kept = ["before", "printed [i]by the[/i]", "environment", "WARNING mind", "after"]
    assert [line for line in terminal.lines() if line] == kept


def test_the_display_follows_the_size_of_the_terminal(show: Show) -> None:
    terminal = show(*[RIGHT] * 4, FAILING, HANGING, size=(120, 40))
    terminal.wait_for("5/6", "last error")

    terminal.resize(40, 8)
    terminal.wait_until(lambda: terminal.fits("5/6") and "sampling" not in terminal.text())
    assert {"score", "outcomes", "last"} <= {line.split(" ")[0] for line in terminal.lines()}
    assert terminal.text().count("model error") == 1

    terminal.resize(3, 2)
    terminal.wait_until(lambda: "score" not in terminal.text())
    terminal.resize(100, 30)
    terminal.wait_until(lambda: terminal.fits("5/6") and "sampling" in terminal.text())
    assert terminal.text().count("outcomes") == 1


def test_a_run_of_unknown_length_says_so(show: Show) -> None:
    more = [RIGHT] * 33  # than may be in flight, so that the end of the source is not seen yet
    terminal = show(RIGHT, *[HANGING] * 33, *more, lazy=True)

    terminal.wait_for("1 finished", "total not known yet", "32 in flight")


def test_retries_are_counted_and_explained(show: Show) -> None:
    terminal = show(TRANSIENT, RIGHT, HANGING, retries=1)

    terminal.wait_for("1 retry", "last error  ModelTimeoutError")


def test_a_terminal_halted_with_ctrl_s_does_not_halt_the_run(show: Show, tmp_path: Path) -> None:
    done = tmp_path / "done"
    terminal = show(*[{"text": "say it", "delay_seconds": 0.5}] * 33, done=str(done))
    terminal.wait_for("0/33")

    terminal.type("\x13")
    terminal.wait_until(done.exists)
    terminal.type("\x11")
    terminal.wait_for_end()

    assert terminal.program.returncode == 0
    assert [line for line in terminal.lines() if line] == ["before", "after"]


def test_a_suspended_run_leaves_the_terminal_to_the_shell_and_comes_back(show: Show) -> None:
    terminal = show(RIGHT, HANGING)
    terminal.wait_for("1/2")

    terminal.program.send_signal(20)  # SIGTSTP, which a terminal sends to a job only under a real shell
    terminal.wait_until(lambda: not terminal.hides_cursor())
    assert [line for line in terminal.lines() if line] == ["before"]
    terminal.wait_until(lambda: stopped(terminal.program.pid))
    terminal.program.send_signal(18)

    terminal.wait_for("1/2", "1 in flight")


def stopped(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"


# The plain display


def test_without_a_live_display_a_terminal_gets_a_bar_and_log_lines(show: Show) -> None:
    terminal = show(*[RIGHT] * 3, FAILING, HANGING, disabled=True, warns={"say it": "mind\x1b[2J"})

    terminal.wait_for("4/5", "score 1.000", "errors 1", "tokens 6/6")

    assert terminal.lines()[:2] == [
        "before",
        "Evaluating echo with scripted [bold]model[/bold]: endpoint http://127.0.0.1:8000",
    ]
    assert terminal.lines().count("WARNING mind") == 3
    terminal.type("\x03")
    terminal.wait_for("Stopping: 1 rollout in flight")
    terminal.type("\x03")
    terminal.wait_for("after")


class LogFile(io.StringIO):
    """A stream that is no terminal."""

    def lines(self) -> list[str]:
        return self.getvalue().splitlines()


def test_a_short_run_into_a_file_says_how_it_starts_and_how_it_ends(environ: dict[str, str]) -> None:
    file, control = LogFile(), Control()
    given = {"env_id": "echo", "model": "scripted", "num_examples": 2, "rollouts_per_example": 1}
    prepared = prepare(given, environ)

    async def shown_run() -> None:
        async with choose_display([DisplayedRun(SETTINGS, control)], stream=file) as display:
            await run(prepared, [display.listener(0)], control=control)

    asyncio.run(shown_run())

    first, last = file.lines()
    assert first[8:] == " Evaluating echo with scripted: at once 32"
    assert last[8:] == (
        " Finished after 0:00: 2/2 rollouts (100%); score 1.000; 2 scored; tokens 4 in, 4 out"
    )
    assert time.strptime(first[:8], "%H:%M:%S")
    assert "\x1b" not in file.getvalue()
    assert "\r" not in file.getvalue()


def test_a_long_run_into_a_file_gets_a_line_for_each_tenth_but_not_more_than_one_in_ten_seconds() -> None:
    told = Told(planned=100)

    told.finish(30, after=9)
    assert told.news() == []
    told.finish(1, after=2)
    assert told.news() == [
        "31/100 rollouts (31%), 2.8/s, 0:24 left; score 1.000; 31 scored; tokens 0 in, 0 out"
    ]
    told.finish(9, after=20)
    assert told.news() == []
    told.finish(1, after=1)
    assert len(told.news()) == 1


def test_a_slow_run_into_a_file_gives_a_sign_of_life_every_minute() -> None:
    told = Told(planned=1000)

    told.finish(0, after=59)
    assert told.news() == []
    told.finish(0, after=1)
    (line,) = told.news()

    assert line.startswith("0/1,000 rollouts (0%), 0.0/s; no score yet")


def test_log_lines_reach_a_file_as_they_come() -> None:
    told = Told(planned=1)

    told.hear(LogLine("INFO", "building\x1b[31m the\nimage", 0.0))
    assert told.news() == ["INFO building the image"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(logging, "raiseExceptions", False)
        asyncio.run(told.log_inside_and_outside("disk is %s", "slow"))
    assert [line for line in told.news() if "disk" in line] == ["WARNING disk is slow"]


def test_a_file_is_told_that_the_run_is_stopping() -> None:
    told = Told(planned=3)
    told.hear(RolloutStarted(("a", 0)))

    told.control.stop()
    told.finish(0, after=1)
    told.finish(0, after=1)

    assert told.news() == ["Stopping: 1 rollout in flight will finish; Ctrl-C again leaves at once."]


def test_a_reader_that_goes_away_stops_no_run() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer, "w")
    display = PlainDisplay(stream, [DisplayedRun(SETTINGS, Control())])

    display.listener(0)(LogLine("INFO", "anybody there?", 0.0))

    with suppress(BrokenPipeError):
        stream.close()


class Told:
    """A plain display of a started run, with a clock to turn."""

    def __init__(self, planned: int | None) -> None:
        self.now = 1000.0
        self.file = io.StringIO()
        self.control = Control()
        self.control.tally = self.tally = Tally()
        self.display = PlainDisplay(self.file, [DisplayedRun(SETTINGS, self.control)], clock=lambda: self.now)
        self.hear = self.display.listener(0)
        self.hear(RunStarted(RUN, planned))
        self.display.look()

    def finish(self, count: int, after: float) -> None:
        self.now += after
        for number in range(count):
            self.tally.add(RolloutLine(f"{self.now}-{number}", 0, "scored", reward=1.0))
            self.hear(RolloutsFinished((scored_rollout(),)))
        self.display.look()

    def news(self) -> list[str]:
        """New lines without their times."""
        lines = [line[9:] for line in self.file.getvalue().splitlines()]
        self.file.seek(0)
        self.file.truncate()
        return lines

    async def log_inside_and_outside(self, *words: str) -> None:
        log = logging.getLogger("proctor")
        async with self.display:
            log.warning(*words)
        log.warning(*words)


# Several runs in plain lines


def several(*labels: str) -> list[DisplayedRun]:
    return [
        DisplayedRun([("environment", "echo"), ("model", "m"), ("label", label), ("at once", "4")], Control())
        for label in labels
    ]


class ToldOfSeveral:
    """A plain display of several runs, with a clock to turn."""

    def __init__(self, *labels: str) -> None:
        self.now = 1000.0
        self.file = io.StringIO()
        self.runs = several(*labels)
        self.display = PlainDisplay(self.file, self.runs, clock=lambda: self.now)
        self.display.begin()

    def hear(self, place: int, *events: Event) -> None:
        for event in events:
            self.display.listener(place)(event)

    def start(self, place: int, planned: int) -> None:
        self.runs[place].control.tally = Tally()
        self.hear(place, RunStarted(RUN, planned))
        self.display.look()

    def finish(self, place: int, count: int, after: float) -> None:
        self.now += after
        tally = self.runs[place].control.tally
        assert tally is not None
        for number in range(count):
            tally.add(RolloutLine(f"{self.now}-{number}", 0, "scored", reward=1.0, token_usage=Usage(7, 3)))
            self.hear(place, RolloutsFinished((scored_rollout(),)), called(Usage(7, 3)))
        self.display.look()

    def news(self) -> list[str]:
        lines = [line[9:] for line in self.file.getvalue().splitlines()]
        self.file.seek(0)
        self.file.truncate()
        return lines


def test_without_a_live_display_several_runs_share_one_bar(show: Show) -> None:
    parts = [{"name": "one", "steps": [RIGHT, FAILING, HANGING]}, {"name": "two", "steps": [RIGHT, HANGING]}]
    terminal = show(parts=parts, disabled=True)

    terminal.wait_for("3/5", "errors 1", "2 runs:")

    assert terminal.lines()[:2] == ["before", "Evaluating 2 runs"]
    assert terminal.line_with("[two · scripted] Started")


def test_until_a_key_is_pressed_the_run_that_goes_on_is_shown(show: Show) -> None:
    parts = [{"name": "one", "steps": [RIGHT]}, {"name": "two", "steps": [HANGING]}, {"name": "three"}]
    terminal = show(parts=parts, one_by_one=True)

    terminal.wait_for("1 finished, 1 running, 1 waiting", "two  with  scripted")
    terminal.type("h")
    terminal.wait_for("one  with  scripted")

    assert terminal.line_with("▸").split()[1] == "one"


def test_several_runs_in_a_file_are_told_apart_by_name_from_start_to_end() -> None:
    told = ToldOfSeveral("t=0", "t=1", "t=2")
    ten, four = "score 1.000; 10 scored", "score 1.000; 4 scored; tokens 28 in, 12 out"
    states = "1 finished, 1 failed, 1 stopped"

    told.start(0, 10)
    assert told.news() == ["Evaluating 3 runs", "[echo · m t=0] Started: at once 4"]
    told.finish(0, 10, after=5)
    told.hear(0, RunEnded(ended_run("finished")))
    told.hear(1, RunEnded(ended_run("failed", "m refused the key.")))
    told.display.look()
    assert told.news() == [
        f"[echo · m t=0] Finished after 0:05: 10/10 rollouts (100%); {ten}; tokens 70 in, 30 out",
        "[echo · m t=1] Failed before it began: m refused the key.",
    ]
    told.start(2, 10)
    told.finish(2, 4, after=5)
    told.hear(2, RunEnded(ended_run("stopped", "stopped by hand")))
    told.display.close()
    told.display.close()

    assert told.news() == [
        "[echo · m t=2] Started: at once 4",
        f"[echo · m t=2] Stopped after 0:05: 4/10 rollouts (40%); {four}; stopped by hand",
        f"All runs ended after 0:10: 14/20 rollouts (70%); {states}; tokens 98 in, 42 out",
    ]


def test_in_between_one_run_at_a_time_is_told_of_and_every_quiet_minute_all_of_them() -> None:
    told = ToldOfSeveral("t=0", "t=1")
    told.start(0, 100)
    told.start(1, 100)
    told.news()

    told.finish(0, 30, after=5)
    told.finish(1, 20, after=5)
    (line,) = told.news()
    assert line.startswith("[echo · m t=0] 30/100 rollouts (30%)")
    told.finish(1, 1, after=5)
    assert told.news() == []
    told.finish(0, 1, after=5)
    (line,) = told.news()
    assert line.startswith("[echo · m t=1] 21/100 rollouts (21%)")
    told.finish(0, 0, after=60)
    (line,) = told.news()
    assert line.startswith("All runs: 52/200 rollouts (26%)")


def test_log_lines_name_the_run_they_belong_to() -> None:
    told = ToldOfSeveral("t=0", "t=1")
    told.news()

    async def say() -> None:
        async with told.display:
            log = logging.getLogger("proctor")
            log.warning("of one", extra={"run_index": 1})
            log.warning("of all")
            log.warning("of nobody here", extra={"run_index": 7})

    asyncio.run(say())

    said = [line for line in told.news() if "WARNING" in line]
    assert said == ["[echo · m t=1] WARNING of one", "WARNING of all", "WARNING of nobody here"]


# Which one


@pytest.mark.parametrize(
    ("term", "terminal", "disabled", "kind"),
    [
        ("xterm", True, False, "LiveDisplay"),
        ("xterm", True, True, "PlainDisplay"),
        ("dumb", True, False, "PlainDisplay"),
        ("xterm", False, False, "PlainDisplay"),
    ],
)
def test_only_a_capable_terminal_gets_the_live_display(
    term: str, terminal: bool, disabled: bool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = os.openpty()
    monkeypatch.setenv("TERM", term)
    with os.fdopen(theirs, "w") as tty:
        stream = tty if terminal else io.StringIO()
        assert (
            type(
                choose_display([DisplayedRun(SETTINGS, Control())], disabled=disabled, stream=stream)
            ).__name__
            == kind
        )
    os.close(ours)


def test_plain_lines_need_no_rich() -> None:
    code = """
import io, sys
from proctor.cli.live.display_choice import choose_display
from proctor.cli.live.progress import DisplayedRun
from proctor.evaluation.evaluate import Control
choose_display([DisplayedRun([], Control())], stream=io.StringIO())
sys.exit("rich" in sys.modules or "tqdm" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# What both count


RUN = Run(id="1", env_id="echo", model="scripted")


def ended_run(status: RunStatus, note: str = "") -> Run:
    return Run(id="1", env_id="echo", model="scripted", status=status, note=note)


def scored_rollout(outcome: Outcome = "scored", failure: Failure | None = None) -> Rollout:
    span = Span(0.0, 1.0)
    return Rollout(
        task=Task(id="a"),
        number=0,
        outcome=outcome,
        trace=Trace(),
        timing=Timing(span, span, span, 1.0),
        failure=failure,
    )


def called(usage: Usage | None = None, failure: Failure | None = None, role: str = "agent") -> ModelCalled:
    reply = None if usage is None else Reply({"role": "assistant", "content": ""}, usage=usage)
    return ModelCalled(("a", 0), ModelCall(role, "m", (), {}, 0.0, reply=reply, failure=failure))


def test_a_resumed_run_starts_from_what_was_finished_before() -> None:
    now = [0.0]
    control = Control()
    control.tally = Tally()
    for number in range(50):
        control.tally.add(RolloutLine(number, 0, "scored", reward=1.0, token_usage=Usage(10, 5)))
    progress = RunProgress(DisplayedRun((), control), clock=lambda: now[0])

    progress(RunStarted(RUN, 100, finished_before=50))
    progress.look()
    now[0] = 5.0
    for number in range(50, 60):
        control.tally.add(RolloutLine(number, 0, "scored", reward=0.0))
        progress(RolloutsFinished((scored_rollout(),)))
    progress(called(Usage(7, 3)))
    progress(called(Usage(100, 100), role="judge"))
    progress.look()

    assert (progress.finished, progress.finished_before) == (60, 50)
    assert (progress.input_tokens, progress.output_tokens) == (507, 253)
    assert progress.per_second == 2.0
    assert progress.tokens_per_second == pytest.approx(3 / 5)
    assert progress.seconds_left == 20.0
    assert progress.score.mean == pytest.approx(50 / 60)


def test_the_score_is_worked_out_at_most_once_a_second() -> None:
    now = [0.0]
    control = Control()
    control.tally = Tally()
    progress = RunProgress(DisplayedRun((), control), clock=lambda: now[0])

    seen = []
    for tenth in range(21):
        now[0] = tenth / 10
        control.tally.add(RolloutLine(tenth, 0, "scored", reward=1.0))
        progress.look()
        seen.append(progress.score.n)

    assert sorted(set(seen)) == [1, 11, 21]


def test_a_rollout_that_waits_for_its_next_try_is_not_in_flight() -> None:
    progress = RunProgress(DisplayedRun((), Control()))
    events: list[Event] = [
        RolloutStarted(("a", 0)),
        RolloutStarted(("a", 1)),
        RolloutRetried(("a", 0), Failure("OverloadedError", "503")),
    ]

    for event in events:
        progress(event)
    assert (progress.in_flight, progress.retries) == (1, 1)
    progress(RolloutStarted(("a", 0)))
    assert progress.in_flight == 2


def test_an_excluded_rollout_is_no_error_and_a_rate_limit_is_noticed() -> None:
    progress = RunProgress(DisplayedRun((), Control()))

    progress(RolloutsFinished((scored_rollout("excluded", Failure("ExcludedError", "not today")),)))
    assert progress.last_error is None
    progress(called(failure=Failure("RateLimitError", "429")))
    assert progress.rate_limited == 1
    progress(RolloutsFinished((scored_rollout("timeout", Failure("DeadlineError", "too long")),)))
    assert progress.last_error == ("DeadlineError", "too long")


def test_the_plan_may_be_counted_late_and_a_stop_is_over_when_the_run_is() -> None:
    control = Control()
    progress = RunProgress(DisplayedRun((), control))

    progress(RunStarted(RUN, None))
    progress(PlanCounted(7))
    assert progress.planned == 7
    control.stop()
    assert progress.stopping() is not None
    progress(RunEnded(RUN))
    assert progress.stopping() is None


def test_outcomes_come_scored_first_then_failures_by_number() -> None:
    control = Control()
    control.tally = Tally()
    failed: list[Outcome] = ["excluded", "timeout", "model_error", "model_error"]
    scored: list[Outcome] = ["timeout", "truncated", "scored"]
    for number, outcome in enumerate(failed):
        control.tally.add(RolloutLine(number, 0, outcome))
    for number, outcome in enumerate(scored):
        control.tally.add(RolloutLine(number, 1, outcome, reward=1.0))

    counts = RunProgress(DisplayedRun((), control)).outcomes()

    assert counts == [
        ("scored", 1),
        ("model_error", 2),
        ("timeout", 1),
        ("scored_at_timeout", 1),
        ("truncated", 1),
        ("excluded", 1),
    ]


def test_text_from_outside_loses_whatever_a_terminal_would_obey() -> None:
    assert one_line(
        "a\x1b[31;1mb\x1b]8;;http://x\x07c\x1b]0;title\x1b\\d\x9b2Je\x1b(Bf\x07\r\n\tg\u202eh\x1b"
    ) == ("abcdef g h")


def test_numbers_are_short_and_keep_their_width() -> None:
    assert [format_short_count(n) for n in (0, 999, 1000, 12_345, 999_400, 999_960, 2e6, 123e6)] == (
        ["0", "999", "1.0k", "12.3k", "999k", "1.0M", "2.0M", "123M"]
    )
    assert [format_short_number(x) for x in (0.5, -1, 12.345, 1234.56, 1e6)] == (
        ["0.500", "-1.000", "12.35", "1234.6", "1.00e+06"]
    )
    assert [format_rate(x) for x in (None, 0.0, 0.5, 2.44, 1234.0)] == [
        "–",
        "0.0/s",
        "30.0/min",
        "2.4/s",
        "1.2k/s",
    ]
    assert [format_clock(x) for x in (0.9, 72, 4000, 183_600)] == ["0:00", "1:12", "1:06:40", "2d 03:00"]


def test_the_length_of_a_suite_is_guessed_until_every_run_has_counted_its_tasks() -> None:
    now = [0.0]
    runs = [RunProgress(shown, clock=lambda: now[0]) for shown in several("a", "b", "c")]
    totals = Totals(runs, clock=lambda: now[0])
    assert (totals.planned, totals.count(), totals.states()) == (None, "0", "3 waiting")

    runs[0](RunStarted(RUN, 10))
    runs[1](RunStarted(RUN, 30))
    assert (totals.planned, totals.count()) == (60, " 0/~60")
    runs[2](RunEnded(ended_run("failed", "no key")))
    assert (totals.planned, totals.count()) == (40, " 0/40")
    assert totals.states() == "1 failed, 2 running"


def test_the_clock_of_a_run_stands_still_when_it_has_ended() -> None:
    now = [0.0]
    control = Control()
    control.tally = Tally()
    progress = RunProgress(DisplayedRun((), control), clock=lambda: now[0])
    now[0] = 50.0
    assert progress.state == "waiting"
    progress(RunStarted(RUN, 4))
    now[0] = 52.0
    for number in range(4):
        control.tally.add(RolloutLine(number, 0, "scored", reward=1.0))
        progress(RolloutsFinished((scored_rollout(),)))
    progress(RunEnded(ended_run("finished")))
    now[0] = 99.0
    progress.look()

    assert (progress.state, progress.seconds, progress.per_second) == ("finished", 2.0, 2.0)
    assert progress.score.mean == 1.0


def test_a_log_that_is_scrolled_back_stays_where_it_is_while_lines_come() -> None:
    log = LogBuffer()
    for number in range(10):
        log.take(LogLine("INFO", f"{number}", 0.0))

    def shown() -> str:
        return "".join(line.text for line in log.visible_lines(3))

    assert shown() == "789"
    log.scroll(2)
    assert shown() == "567"
    log.take(LogLine("INFO", "X", 0.0))
    assert (shown(), log.behind) == ("567", 3)
    log.scroll(100)
    assert shown() == "012"
    log.scroll(-100)
    assert shown() == "89X"


# The overview


def overview(runs: list[RunProgress], width: int, height: int, selected: int = 0) -> list[str]:
    rows = count_visible_rows(height, len(runs))
    first = scroll_to_selected(0, selected, rows, len(runs))
    drawn = overview_lines(runs, Totals(runs), selected, first, width, height)
    return ["".join(text for text, _ in line.parts).rstrip() for line in drawn]


def watched(count: int) -> list[RunProgress]:
    shown = [
        DisplayedRun(
            [
                ("environment", ("gsm8k", "tool-use-bench")[number % 2]),
                ("model", "openai/gpt-4.1-mini"),
                ("label", f"temperature={number} difficulty=hard"),
            ],
            Control(),
        )
        for number in range(count)
    ]
    return [RunProgress(each) for each in shown]


@pytest.mark.parametrize("height", range(1, 21))
@pytest.mark.parametrize("selected", [0, 11, 23])
def test_the_overview_keeps_to_its_height_and_the_selected_run_in_sight(height: int, selected: int) -> None:
    lines = overview(watched(24), 120, height, selected)

    assert len(lines) == height
    assert lines[0].startswith("24 runs")
    if height > 1:
        (marked,) = [line for line in lines if line.startswith("▸")]
        assert f"temperature={selected} " in marked
    if height >= 4:
        assert " of 24 " in lines[-1]


@pytest.mark.parametrize("width", [200, 119, 79, 59, 39, 30])
def test_the_overview_fits_its_width_and_keeps_its_columns_straight(width: int) -> None:
    lines = overview(watched(6), width, 10)

    assert all(cell_len(line) <= width for line in lines)
    rows = [line for line in lines if line[:2] in ("▸ ", "  ") and "–" in line]
    assert len({line.index("–") for line in rows}) == 1
    assert (" state" in lines[1]) is (width >= 59)
    if width >= 59:
        assert all(line.endswith("waiting") for line in rows)
        assert len(set(rows)) == 6


# Keys


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ([b"\x1b[C", b"\x1bOD", b"l", b"h", b"\t", b"\x1b[Z"], "right left right left right left"),
        ([b"\x1b[A\x1b[A\x1b[B", b"kk", b"j"], "up up down up up down"),
        ([b"\x1b[H", b"\x1b[1~", b"\x1bOF", b"\x1b[4~", b"\x1b[1;5C"], "home home end end right"),
        ([b"\x1b", b"[", b"C", b"\x1b[1", b";2D"], "right left"),
        ([b"q", b"?", b"\r"], "quit help enter"),
        ([b"\x1b[200~quit now\x1b[201~", b"q"], "quit"),
        ([b"\x1b[200~quit", b" q", b"q\x1b[201~"], ""),
        ([b"git push -q\n", b"q"], ""),
        ([b"\thh", b"lq"], "right left left"),
        ([b"\x1b[<0;10;10M", b"\x1b]11;rgb:0/0/0\x07", b"\x1bq", b"\xc3\xa9", b"\x00", b"z"], ""),
        ([b"\x1b[" + b"9" * 5000], ""),
    ],
)
def test_keys_are_known_however_they_arrive_and_text_is_no_keys(typed: list[bytes], named: str) -> None:
    keys = KeyDecoder(clock=lambda: 0.0)

    assert " ".join(name for data in typed for name in keys.feed(data)) == named


def test_an_escape_that_nothing_follows_swallows_no_later_key() -> None:
    now = [0.0]
    keys = KeyDecoder(clock=lambda: now[0])

    assert keys.feed(b"\x1b") == []
    now[0] = 2.0
    assert keys.feed(b"q") == ["quit"]
    assert keys.feed(b"\x1b[200~") == []
    now[0] = 4.0
    assert keys.feed(b"q") == ["quit"]
