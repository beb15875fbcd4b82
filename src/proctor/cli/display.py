"""The live display of a running evaluation: calm, aligned, and gone when the run is over.

Drawn a few times a second by a task of the same event loop, so nothing is read across threads; between
frames an event only moves counters. Everything from outside is shown as plain text: neither markup nor
escape codes in it have any effect.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import TracebackType

import msgspec
from rich.console import Console
from rich.text import Text

from proctor.cli.progress import (
    LogTap,
    Progress,
    Settings,
    clock_text,
    counted,
    interval_text,
    short_count,
    short_number,
    short_rate,
    title,
)
from proctor.cli.screen import Aside, Screen
from proctor.cli.text import LONGEST_LINE, one_line
from proctor.evaluation import Control
from proctor.events import Event, LogLine

log = logging.getLogger("proctor")

FRAME_SECONDS = 0.2
LABEL = 12
COLUMN = 16
GAP = 2
WIDEST_BAR_LINE = 120
MOST_METRICS = 6
LOG_LINES = 5
KEPT_LOG_LINES = 200
KEPT_WARNINGS = 10

LABELS, QUIET = "dim", "bright_black"
DONE, GOOD, BAD, WARN = "cyan", "bold", "red", "yellow"
LEVEL_STYLES = {"WARNING": WARN, "ERROR": BAD, "CRITICAL": BAD}


class Block(msgspec.Struct, frozen=True):
    """Lines that stand together; where height is scarce the ones with the highest rank go first."""

    rank: int
    lines: list[Text]


class LiveDisplay:
    """Shows a run while it goes on."""

    def __init__(
        self, console: Console, settings: Settings, control: Control, fullscreen: bool = False
    ) -> None:
        self.progress = Progress(control)
        self._console = console
        self._env, self._model, self._settings = title(settings)
        self._fullscreen = fullscreen
        self._screen = Screen(console.file, fullscreen)  # type: ignore[arg-type]  # a terminal is a TextIO
        self._printed = Aside()
        self._held: deque[str] = deque(maxlen=KEPT_LOG_LINES)
        self._log: deque[LogLine] = deque(maxlen=KEPT_LOG_LINES)
        self._warnings: Counter[tuple[str, str]] = Counter()
        self._tap = LogTap(self._take_log)
        self._task: asyncio.Task[None] | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, LogLine):
            self._take_log(event)
        else:
            self.progress(event)

    async def __aenter__(self) -> LiveDisplay:
        log.addHandler(self._tap)
        self._printed.catch()
        if signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:  # ignored where nobody could wake us again
            with suppress(ValueError, RuntimeError):  # only the main thread hears signals
                asyncio.get_running_loop().add_signal_handler(signal.SIGTSTP, self._suspend)
        self._task = asyncio.create_task(self._keep_drawing())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTSTP)
        self.close()

    def close(self) -> None:
        """Give the terminal back at once, then say what must not be lost with the picture."""
        self._screen.close()
        log.removeHandler(self._tap)
        self._printed.release()
        for line in (*self._held, *self._printed.take()):
            self._leave(Text(one_line(line)))
        for (level, text), times in self._warnings.items():
            again = f" ({times}×)" if times > 1 else ""
            self._leave(Text.assemble((level, LEVEL_STYLES[level]), f" {one_line(text)}{again}"))
        self._held.clear()
        self._warnings.clear()

    def _leave(self, line: Text) -> None:
        with suppress(OSError):  # a terminal that went away spoils no result
            self._console.print(line, soft_wrap=True)

    async def _keep_drawing(self) -> None:
        while True:
            try:
                self._draw()
            except Exception:
                self.close()
                log.exception("the display failed; the run goes on without it")
                return
            await asyncio.sleep(FRAME_SECONDS)

    def _suspend(self) -> None:
        """Ctrl-Z: leave a clean terminal to the shell, and come back with the job."""
        self._screen.close()
        os.kill(os.getpid(), signal.SIGSTOP)

    def _take_log(self, line: LogLine) -> None:
        self._log.append(line)
        if line.level in LEVEL_STYLES:
            warning = (line.level, line.text[:LONGEST_LINE])
            if warning in self._warnings or len(self._warnings) < KEPT_WARNINGS:
                self._warnings[warning] += 1

    def _draw(self) -> None:
        self.progress.look()
        if not self._screen.ready():
            return
        above = self._printed.take()
        if self._fullscreen:
            self._held.extend(above)
            self._log.extend(LogLine("", line, time.time()) for line in above)
            above = []
        columns, height = self._screen.size()
        lines = self._lines(columns, height if self._fullscreen else height - 1)
        self._screen.draw(self._as_ansi(lines, columns), [one_line(line) for line in above])

    def _as_ansi(self, lines: Iterable[Text], columns: int) -> list[str]:
        cut = []
        for line in lines:
            line.truncate(columns, overflow="ellipsis")
            cut.append(line)
        with self._console.capture() as captured:
            self._console.print(Text("\n").join(cut), soft_wrap=True, end="")
        return captured.get().split("\n")

    # What is shown

    def _lines(self, width: int, height: int) -> list[Text]:
        empty, last_log = Block(11, [Text()]), Block(9, self._log_lines(1))
        blocks = [
            Block(6, [self._title()]),
            Block(10, self._settings_lines(width)),
            empty,
            Block(0, [self._bar_line(min(width, WIDEST_BAR_LINE))]),
            Block(1, self._stop_line()),
            empty,
            Block(2, self._score_row(width)),
            Block(8, self._metrics_row(width)),
            Block(5, self._rollouts_row(width)),
            Block(7, self._tokens_row(width)),
            Block(4, self._outcomes_row(width)),
            Block(3, self._error_row()),
            last_log,
        ]
        chosen = fitting(blocks, height)
        lines = [line for block in chosen for line in block.lines]
        room = height - len(lines)
        if room > 0 and last_log.lines and last_log in chosen:
            most = room if self._fullscreen else min(room, LOG_LINES)
            lines[-1:] = [Text(), *self._log_lines(most)]
        return lines

    def _title(self) -> Text:
        run = self.progress.run
        env = self._env or (one_line(run.env_id) if run else "")
        model = self._model or (one_line(run.model) if run else "")
        return Text.assemble((env, GOOD), ("  with  ", LABELS), (model, GOOD))

    def _settings_lines(self, width: int) -> list[Text]:
        pairs = [Text.assemble((f"{label} ", LABELS), value) for label, value in self._settings]
        return flowed(pairs, width, most_lines=2)

    def _bar_line(self, width: int) -> Text:
        progress = self.progress
        finished, planned = progress.finished, progress.planned
        if planned is None:
            counts = f"{finished:,} finished" if progress.run else "starting"
            parts = [counts, clock_text(progress.seconds)]
            if progress.run:
                parts.append("total not known yet")
        else:
            parts = [f"{finished:>{len(f'{planned:,}')},}/{planned:,}", f"{share(finished, planned):>3} %"]
            parts.append(clock_text(progress.seconds))
            left = progress.seconds_left
            if left is not None and finished < planned and not progress.control.stopping:
                parts.append(f"{clock_text(left)} left")
        while len(parts) > 1 and len("  ".join(parts)) > width - 10:
            parts.pop()
        words = "  ".join(parts)
        # Room for the time left is kept from the start: a bar that changes its length is restless.
        bar = self._bar(width - max(len(words), 34 if width >= 70 else 0) - 2)
        return Text.assemble(bar, "  " if bar else "", words)

    def _bar(self, cells: int) -> Text:
        if cells < 4:
            return Text()
        progress = self.progress
        planned = progress.planned
        full, empty = ("#", "-") if self._console.options.ascii_only else ("━", "─")
        if not planned:
            return Text(empty * cells, QUIET)
        done = min(cells, cells * progress.finished // planned)
        failed = min(done, math.ceil(cells * progress.failed / planned))
        return Text.assemble(
            (full * (done - failed), DONE), (full * failed, BAD), (empty * (cells - done), QUIET)
        )

    def _stop_line(self) -> list[Text]:
        said = self.progress.stopping()
        return [] if said is None else [Text(said, WARN)]

    def _score_row(self, width: int) -> list[Text]:
        score = self.progress.score
        if score.mean is None:
            return row("score", [Text("–")], width)
        cells = [Text(short_number(score.mean), GOOD)]
        if score.interval is not None:
            cells.append(Text(interval_text(score)))
        cells.append(Text(counted(score.n, "task")))
        if score.se is not None:
            cells.append(Text(f"se {short_number(score.se)}"))
        return row("score", cells, width)

    def _metrics_row(self, width: int) -> list[Text]:
        shown = list(self.progress.metrics.items())[:MOST_METRICS]
        cells = [Text.assemble((f"{one_line(name)} ", LABELS), short_number(mean)) for name, mean in shown]
        return row("metrics", cells, width, most_lines=2)

    def _rollouts_row(self, width: int) -> list[Text]:
        progress = self.progress
        cells = [Text(f"{progress.in_flight:,} in flight"), Text(short_rate(progress.per_second))]
        if progress.retries:
            cells.append(Text(counted(progress.retries, "retry", "retries"), WARN))
        if progress.finished_before:
            cells.append(Text(f"{progress.finished_before:,} from before"))
        if progress.rate_limited:
            cells.append(Text(f"{progress.rate_limited:,} rate-limited", WARN))
        if progress.requests_at_once is not None:
            cells.append(Text(f"cut to {progress.requests_at_once:,} at once", WARN))
        return row("rollouts", cells, width, most_lines=2)

    def _tokens_row(self, width: int) -> list[Text]:
        progress = self.progress
        cells = [Text(f"{short_count(progress.input_tokens)} in")]
        cells.append(Text(f"{short_count(progress.output_tokens)} out"))
        cells.append(Text(short_rate(progress.tokens_per_second, " out")))
        return row("tokens", cells, width)

    def _outcomes_row(self, width: int) -> list[Text]:
        styles = {"scored": "", "excluded": "", "truncated": WARN}
        cells = [
            Text(f"{count:,} {name.replace('_', ' ')}", styles.get(name, BAD))
            for name, count in self.progress.outcomes()
        ]
        return row("outcomes", cells, width, most_lines=2)

    def _error_row(self) -> list[Text]:
        if self.progress.last_error is None:
            return []
        kind, message = map(one_line, self.progress.last_error)
        return [Text.assemble((f"{'last error':<{LABEL}}", LABELS), (kind, BAD), f" {message}")]

    def _log_lines(self, most: int) -> list[Text]:
        return [
            Text.assemble(
                (time.strftime("%H:%M:%S ", time.localtime(line.at)), LABELS),
                (f"{one_line(line.level)} " if line.level else "", LEVEL_STYLES.get(line.level, LABELS)),
                one_line(line.text),
            )
            for line in list(self._log)[-most:]
        ]


def fitting(blocks: Sequence[Block], height: int) -> list[Block]:
    """The blocks that fit, most important first, in the order they came."""
    chosen: set[int] = set()
    for place in sorted(range(len(blocks)), key=lambda place: blocks[place].rank):
        size = len(blocks[place].lines)
        if size > height:
            break
        height -= size
        chosen.add(place)
    return [block for place, block in enumerate(blocks) if place in chosen]


def row(label: str, cells: Sequence[Text], width: int, most_lines: int = 1) -> list[Text]:
    """A labelled line of cells in columns, so that neighbours stand under each other and nothing jumps."""
    lines: list[Text] = []
    line = Text.assemble((f"{label:<{LABEL}}", LABELS))
    for number, cell in enumerate(cells):
        start = LABEL + math.ceil(max(0, line.cell_len - LABEL) / COLUMN) * COLUMN
        if start > LABEL and start - line.cell_len < GAP:
            start += COLUMN
        if number and start + cell.cell_len > width:
            lines.append(line)
            if len(lines) == most_lines:
                return lines
            line, start = Text(), LABEL
        line.append(" " * (start - line.cell_len))
        line.append_text(cell)
    return [*lines, line] if cells else []


def flowed(parts: Sequence[Text], width: int, most_lines: int) -> list[Text]:
    """Parts one after the other; what does not fit the lines allowed is left out."""
    lines: list[Text] = []
    for part in parts:
        if lines and lines[-1].cell_len + 3 + part.cell_len <= width:
            lines[-1].append("   ").append_text(part)
        elif len(lines) < most_lines:
            lines.append(part)
    return lines


def share(part: int, whole: int) -> int:
    """Per cent, and 100 only when all is done."""
    return min(100, part * 100 // whole) if whole else 100
