"""The live display in a real terminal with a real shell: keys, sizes, job control, and what is left."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.waiting import SECONDS

pytestmark = pytest.mark.skipif(
    not (shutil.which("tmux") and shutil.which("bash")), reason="needs tmux and bash on this machine"
)

SHOWN_RUN = Path(__file__).with_name("shown_run.py")
LOOK_SECONDS = 0.03

RIGHT = {"text": "say it"}
WRONG = {"text": "no"}
WARNING = {"text": "hm"}
FAILING = {"error": "refused", "text": "no such model"}
HANGING = {"text": "say it", "delay_seconds": 60}
REFUSED = "refused the key in MADE_UP_KEY; set another, or name an endpoint with -b."

FOUR = [
    {"name": "gsm8k", "model": "small", "label": "temperature=0", "steps": [RIGHT, WRONG, HANGING]},
    {"name": "gsm8k", "model": "small", "label": "temperature=1", "steps": [RIGHT, FAILING, HANGING]},
    {"name": "wordle", "model": "large", "label": "temperature=0", "steps": [RIGHT] * 3},
    {"name": "wordle", "model": "large", "label": "temperature=1", "refused": REFUSED},
]


class Window:
    """A tmux window with a shell in it, and what its user sees."""

    def __init__(self, folder: Path, environ: dict[str, str], columns: int, lines: int) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", os.devnull]
        self._environ = {**environ, "XDG_STATE_HOME": str(folder / "state")}
        self._folder = folder
        size = ["-x", str(columns), "-y", str(lines)]
        (folder / "rc").write_text("PS1='$ '\n")
        self.ask("new-session", "-d", *size, "-c", str(folder), "bash", "--rcfile", "rc", "-i")
        self.wait_for("$")

    def ask(self, *words: str) -> str:
        command = [*self._tmux, *words]
        done = subprocess.run(command, env=self._environ, check=True, capture_output=True, text=True)
        return done.stdout

    def lines(self) -> list[str]:
        return self.ask("capture-pane", "-p").split("\n")

    def text(self) -> str:
        return "\n".join(self.lines())

    def press(self, *keys: str) -> None:
        self.ask("send-keys", *keys)

    def enter(self, words: str) -> None:
        self.press(words, "Enter")

    def resize(self, columns: int, lines: int) -> None:
        self.ask("resize-window", "-x", str(columns), "-y", str(lines))

    def show(self, after: str = "", **scene: Any) -> None:
        """Start runs with a short command, because long ones would fill the screen."""
        words = msgspec.json.encode(scene).decode()
        script = self._folder / "show"
        script.write_text(f"exec {shlex.join([sys.executable, str(SHOWN_RUN), words])}\n")
        script.chmod(0o755)
        self.enter(f"clear; ./show{after}")

    def wait_until(self, happened: Callable[[list[str]], bool]) -> list[str]:
        deadline = time.monotonic() + SECONDS
        while not happened(lines := self.lines()):
            if time.monotonic() > deadline:
                pytest.fail("this was on the screen:\n" + "\n".join(lines))
            time.sleep(LOOK_SECONDS)
        return lines

    def wait_for(self, *texts: str) -> list[str]:
        return self.wait_until(lambda lines: all(text in "\n".join(lines) for text in texts))

    def wait_for_prompt(self) -> list[str]:
        """The shell waits for a command, and nothing but what was left stands above."""
        return [line for line in self.wait_until(lambda lines: last_of(lines) == "$") if line]

    def modes(self) -> str:
        """How the terminal is set up, as the shell leaves it to programs."""
        self.enter("clear; stty -g > modes; echo written")
        self.wait_until(lambda lines: "written" in lines)
        return (self._folder / "modes").read_text()

    def close(self) -> None:
        self.ask("kill-server")


def last_of(lines: list[str]) -> str:
    return next((line for line in reversed(lines) if line), "")


Open = Callable[..., Window]


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Open]:
    """Opens a window: `window()` has the usual 80 × 24."""
    opened: list[Window] = []
    left_out = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TMUX", "PROMPT_COMMAND")
    environ = {name: value for name, value in os.environ.items() if name not in left_out}

    def start(columns: int = 80, lines: int = 24) -> Window:
        opened.append(Window(tmp_path, environ, columns, lines))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def selected_in(lines: list[str]) -> str:
    """The words of the overview's marked row."""
    (marked,) = [line for line in lines if line.startswith("▸ ")]
    return " ".join(marked.split()[1:])


def selects(name: str) -> Callable[[list[str]], bool]:
    return lambda lines: any(line.startswith("▸ ") and name in " ".join(line.split()) for line in lines)


def test_several_runs_share_the_screen_and_keys_move_between_them(window: Open) -> None:
    terminal = window()
    before = terminal.modes()
    terminal.show(parts=FOUR, warns={"no": "mind this", "say it": "all well"})

    terminal.wait_for("1 finished, 1 failed, 2 running", "mind this")
    scored = ["2/3", "1.000", "1", "running"]
    lines = terminal.wait_until(lambda lines: lines[4].split()[-4:] == scored)
    assert lines[1].startswith("4 runs  7/9   77%")
    assert lines[2].split() == ["done", "score", "errors", "state"]
    assert selected_in(lines).startswith("gsm8k small temperature=0")
    assert lines[6].split()[-3:] == ["–", "–", "failed"]
    assert lines[7].endswith("←/→ switch   ? keys ──")
    assert lines[8] == "gsm8k  with  small  temperature=0"

    terminal.press("Right")
    lines = terminal.wait_until(selects("gsm8k small temperature=1"))
    assert lines[8] == "gsm8k  with  small  temperature=1"
    assert any(line.startswith("last error  RequestRefusedError no such model") for line in lines)
    assert "mind this" not in "\n".join(lines)
    terminal.press("End")
    terminal.wait_for("wordle  with  large  temperature=1", REFUSED[:50])
    terminal.press("Tab", "h", "h")
    terminal.wait_until(selects("gsm8k small temperature=1"))
    terminal.press("Home")
    terminal.wait_until(selects("gsm8k small temperature=0"))
    terminal.press("?")
    terminal.wait_for("↑/↓ log", "q stop")
    terminal.press("?")
    terminal.wait_until(lambda lines: "↑/↓ log" not in "\n".join(lines))

    terminal.press("q")
    terminal.wait_for("Stopping: 2 rollouts in flight will finish; Ctrl-C again leaves at once.")
    terminal.press("q")
    left = terminal.wait_for_prompt()
    assert left[:1] == ["before"]
    assert "WARNING [gsm8k · small temperature=0] mind this" in left
    assert left[-3:] == ["left", "after", "$"]
    assert terminal.modes() == before


def test_the_log_of_a_run_is_scrolled_with_the_keys(window: Open) -> None:
    terminal = window()
    steps = [{"text": f"answer {number}"} for number in range(30)]
    parts = [{"name": "chatty", "steps": [*steps, HANGING]}, {"name": "quiet", "steps": [HANGING]}]
    warns = {f"answer {number}": f"said {number:02}" for number in range(30)}
    terminal.show(parts=parts, warns=warns)
    terminal.wait_for("30/31")
    newest = [line[-7:] for line in terminal.wait_for("WARNING said") if "WARNING said" in line]

    terminal.press("Up", "Up")
    scrolled = terminal.wait_for("2 later lines ↓")
    assert [line[-7:] for line in scrolled if "WARNING said" in line][2:] == newest[:-2]
    terminal.press("Right")
    terminal.wait_until(lambda lines: "WARNING said" not in "\n".join(lines))
    terminal.press("Left")
    terminal.wait_for("2 later lines ↓")
    terminal.press("j", "j")
    terminal.wait_until(lambda lines: [line[-7:] for line in lines if "WARNING said" in line] == newest)


def is_drawn_for(columns: int, selected: str) -> Callable[[list[str]], bool]:
    def is_drawn(lines: list[str]) -> bool:
        ruled = any(" of 24" in line and len(line) == columns - 1 for line in lines)
        return ruled and selects(selected)(lines)

    return is_drawn


def test_resizing_leaves_nothing_behind_and_keeps_the_selected_run_in_sight(window: Open) -> None:
    terminal = window()
    many = [{"name": f"env-{number:02}", "steps": [RIGHT, HANGING]} for number in range(24)]
    terminal.show(parts=many)
    lines = terminal.wait_for("24 runs  24/48", "1–8 of 24")
    assert len([line for line in lines if line]) <= 23
    terminal.press("End")
    terminal.wait_until(selects("env-23"))

    for columns, height in ((120, 40), (60, 14), (40, 10), (80, 24)):
        terminal.resize(columns, height)
        is_drawn = is_drawn_for(columns, "env-23")
        terminal.wait_until(lambda lines: is_drawn(lines) and is_overview_within(lines, height / 2))  # noqa: B023


def is_overview_within(lines: list[str], most: float) -> bool:
    """One overview of all runs, no taller than it may be, and nothing left of another size."""
    tops = [place for place, line in enumerate(lines) if line.startswith("24 runs")]
    rules = [place for place, line in enumerate(lines) if " of 24" in line]
    once = len(tops) == 1 and len(rules) == 1 and sum("with  scripted" in line for line in lines) <= 1
    return once and rules[0] + 1 - tops[0] <= most


def test_ctrl_z_gives_the_shell_a_clean_terminal_and_fg_brings_the_display_back(window: Open) -> None:
    terminal = window()
    before = terminal.modes()
    terminal.show(parts=FOUR)
    terminal.wait_for("2 running", "2/3")

    terminal.press("C-z")
    stopped = terminal.wait_for("Stopped")
    assert not any("runs" in line for line in stopped)
    terminal.wait_until(lambda lines: last_of(lines) == "$")
    assert terminal.modes() == before
    terminal.enter("clear; fg")
    terminal.wait_for("2 running", "2/3")
    terminal.press("Right")
    terminal.wait_until(selects("gsm8k small temperature=1"))

    terminal.press("C-c")
    terminal.wait_for("Stopping: 2 rollouts in flight will finish")
    terminal.press("C-c")
    assert terminal.wait_for_prompt()[-3:] == ["left", "after", "$"]
    assert terminal.modes() == before


def test_in_the_background_the_shell_keeps_its_keys(window: Open) -> None:
    terminal = window()
    terminal.show(after=" &", parts=FOUR)
    terminal.wait_for("before")

    terminal.enter("clear; echo q l l; jobs")
    lines = terminal.wait_for("Running")
    assert "q l l" in lines
    assert not any(line.startswith("4 runs") for line in lines)
    terminal.enter("clear; fg")
    terminal.wait_for("2 running", "2/3")
    terminal.press("q", "q")
    terminal.wait_until(lambda lines: "after" in lines)


@pytest.mark.parametrize("key", ["Enter", "q", "C-c"])
def test_full_screen_stays_until_somebody_has_seen_the_end(window: Open, key: str) -> None:
    terminal = window()
    before = terminal.modes()
    parts = [{"name": "gsm8k", "steps": [RIGHT] * 3}, {"name": "wordle", "steps": [RIGHT, WRONG]}]
    terminal.show(after="; echo code $?", parts=parts, fullscreen=True, warns={"no": "mind"})

    lines = terminal.wait_for("2 finished", "All is done. q, Enter or Ctrl-C leaves.")
    assert lines[0].startswith("2 runs  5/5  100%")
    assert lines[23] == "All is done. q, Enter or Ctrl-C leaves."
    terminal.press("Right")
    terminal.wait_until(selects("wordle"))
    terminal.press(key)

    left = terminal.wait_for_prompt()
    assert left[:1] == ["before"]
    assert left[-4:] == ["WARNING [wordle · scripted] mind", "after", "code 0", "$"]
    assert terminal.modes() == before


def test_full_screen_gives_the_old_screen_back(window: Open) -> None:
    terminal = window(100, 30)
    terminal.show(steps=[RIGHT, WRONG, HANGING], warns={"no": "mind"}, fullscreen=True)

    assert terminal.wait_for("2/3")[0].startswith("echo  with")
    terminal.resize(60, 12)
    assert "1 in flight" in "\n".join(terminal.wait_for("WARNING mind"))
    terminal.press("C-c")
    terminal.wait_for("Stopping")
    terminal.press("C-c")
    assert terminal.wait_for_prompt()[-5:] == ["before", "WARNING mind", "left", "after", "$"]
