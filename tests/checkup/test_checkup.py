"""What an author is told about an environment that should not be measured with, and about one that may."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.checkup.checkup import run_checkup
from proctor.checkup.codes import CODES
from proctor.checkup.finding import CheckupReport
from proctor.checkup.messages import CheckupRequest
from proctor.errors import ConfigError

ROOT = Path(__file__).parent.parent.parent

PYPROJECT = "[project]\nname = 'my-env'\nversion = '0.1.0'\n"
HEAD = '''"""An environment under check."""
import asyncio, os, random, sys, time
from proctor import *
from proctor.trace import text_of
ROWS = [{"question": f"What comes after {n}?", "answer": f"word-{n + 1}"} for n in range(6)]
def right(completion, answer): return float(text_of(completion[-1]) == answer)
'''
SOUND = "def load_environment(): return SingleTurnEnv(ROWS, rubric=Rubric(right))\n"

ONCE = """
made = []
def load_environment():
    made.append(1)
    assert len(made) == 1, 'once only'
    return SingleTurnEnv(ROWS, rubric=Rubric(right))
"""
AWAY = """
class Env(SingleTurnEnv):
    async def check(self): raise ConfigError('the database is away')
def load_environment(): return Env(ROWS, rubric=Rubric(right))
"""
UNCLEAN = """
class Env(SingleTurnEnv):
    @cleanup
    def away(self, state): raise OSError('still open')
def load_environment(): return Env(ROWS, rubric=Rubric(right))
"""

Check = Callable[..., CheckupReport]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Checks an environment with this source after a common head."""
    monkeypatch.chdir(tmp_path)

    def run(
        source: str, *, head: str = HEAD, pyproject: str | None = PYPROJECT, **settings: Any
    ) -> CheckupReport:
        folder = tmp_path / "environments" / "my_env"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "my_env.py").write_text(head + source)
        if pyproject is not None:
            (folder / "pyproject.toml").write_text(pyproject)
        return run_checkup(CheckupRequest(**{"env_id": "my-env", "seconds": 20.0, **settings}))

    return run


def codes(report: CheckupReport) -> list[str]:
    return [finding.code for finding in report.findings]


def told(report: CheckupReport, code: str) -> str:
    """What is said under one code, with its place."""
    finding = next(finding for finding in report.findings if finding.code == code)
    return f"{finding.where}: {finding.message}"


def single(rubric: str, rows: str = "ROWS") -> str:
    return f"def load_environment(): return SingleTurnEnv({rows}, rubric=Rubric({rubric}))\n"


def test_a_sound_environment_is_clean_and_its_agents_are_told_apart(check: Check) -> None:
    report = check(SOUND)

    assert report.findings == ()
    assert report.passes(strict=True)
    assert report.figures.rewards == {"oracle": 1.0, "empty": 0.0, "random": 0.0, "exchanged": 0.0}
    assert (report.figures.tasks, report.figures.gold) == (5, "bare")


@pytest.mark.parametrize(
    ("code", "source", "words"),
    [
        ("E101", "def load_environment(:\n", "my_env.py:7: SyntaxError"),
        ("E102", "nothing = 1\n", "no load_environment"),
        ("E103", "import nowhere_to_be_found\n" + SOUND, "nowhere_to_be_found"),
        ("E104", "def load_environment(level): ...\n", "my_env.py:7: argument 'level'"),
        ("E105", "def load_environment(): raise RuntimeError('no data')\n", "RuntimeError: no data"),
        ("E105", "def load_environment(): return 3\n", "is not an environment"),
        (
            "E106",
            ONCE,
            "once only",
        ),
        (
            "E107",
            AWAY,
            "the database is away",
        ),
        ("E201", single("right", "[{'wrong': 1}]"), "neither 'prompt' nor 'question'"),
        ("E202", single("right", "[]"), "no tasks"),
        ("E203", single("right", "[*ROWS, {**ROWS[0], 'example_id': 3}]"), "the id 3"),
        (
            "E204",
            single("right", "[{'question': str(random.random()), 'answer': 'x'}]"),
            "after a second load",
        ),
        ("E204", single("right", "[{'question': w + '?', 'answer': 2 * w} for w in set('abcdefgh')]"), "set"),
        ("E205", single("right", "[*ROWS, {'question': ' ', 'answer': 'x'}]"), "1 of 7 tasks has no text"),
        ("E302", single("lambda completion: 1 / len(text_of(completion[-1]))"), "my_env.py:7 in <lambda>"),
        ("E302", single("lambda completion: float('nan')"), "finite number"),
        ("E103", "sys.exit(3)\n", "SystemExit: 3"),
        ("E304", "def load_environment(): os.abort()\n", "SIGABRT while load_environment()"),
        (
            "E401",
            single("lambda completion: float(len(text_of(completion[-1])))"),
            "no more than random words",
        ),
        ("E402", single("right, lambda: random.random()"), "scoring again differs in 30 of 30"),
        ("E403", single("lambda completion: 1.0"), "oracle (bare) 1.000, empty 1.000"),
        ("W211", single("right", "[{'question': f'say {n}', 'answer': f'{n}'} for n in 'abcde']"), "5 of 5"),
        ("W212", single("right", "[*ROWS, ROWS[0]]"), "such as task 0"),
        ("W311", "print('loading …')\n" + SOUND, "'loading …'"),
        (
            "W312",
            UNCLEAN,
            "closing failed in 30 of 30 rollouts: still open",
        ),
        (
            "W411",
            "def half(completion, answer, example_id): return right(completion, answer) * (example_id % 2)\n"
            + single("half"),
            "on only 40% of tasks",
        ),
        (
            "W412",
            "def little(completion, answer): return right(completion, answer) / 4\n" + single("little"),
            "0.250",
        ),
        ("N421", single("right", "[{'question': 'How are you?'}]"), "gold(task)"),
        (
            "N423",
            "def load_environment(): return SingleTurnEnv(ROWS, rubric=JudgeRubric())\n",
            "'judge', and none was named; name one with -m",
        ),
    ],
)
def test_what_is_wrong_is_named(check: Check, code: str, source: str, words: str) -> None:
    report = check(source)

    assert words in told(report, code)
    assert report.passes() == (code[0] != "E")


TURNS = """
class Env(MultiTurnEnv):
    async def env_response(self, messages, state): {body}
{gold}
def walked(completion): return float("north" in text_of(completion[0]) and "east" in text_of(completion[-1]))
def load_environment(): return Env(ROWS, rubric=Rubric(walked), max_turns={turns})
"""
GOLD = """
    def gold(self, task): return ["go north", "go east"]
"""


def turns(body: str = "return 'and then?'", gold: str = "", most: int = 2) -> str:
    return TURNS.format(body=body, gold=gold, turns=most)


def test_what_fails_while_it_is_played_is_shown_with_its_line(check: Check) -> None:
    report = check(turns("return {}['door']"))

    assert "30 of 30 rollouts, first with agent empty on task 0: KeyError: 'door'" in told(report, "E301")
    assert "my_env.py:9 in env_response" in told(report, "E301")


def test_a_helper_that_fails_is_told_from_an_environment_that_does(check: Check) -> None:
    report = check(turns("raise ModelError('the simulated user hung up')"))

    assert "model_error in 30 of 30 rollouts" in told(report, "E305")


def test_a_goal_that_words_cannot_reach_needs_a_gold_agent(check: Check) -> None:
    without = check(turns())
    with_one = check(turns(gold=GOLD))

    assert codes(without) == ["N422"]
    assert "cannot be judged without a gold agent" in told(without, "N422")
    assert without.passes(strict=True)
    assert with_one.findings == ()
    assert with_one.figures.rewards == {"oracle": 1.0, "empty": 0.0, "random": 0.0}


def test_a_gold_agent_that_earns_nothing_is_an_error(check: Check) -> None:
    assert "E403" in codes(check(turns(gold=GOLD.replace("east", "home"))))


def test_a_gold_agent_may_call_tools(check: Check) -> None:
    source = """
def open_door(number: int) -> str: return "open" if number == 3 else "locked"
def opened(completion): return float(any(m["role"] == "tool" and m["content"] == "open" for m in completion))
class Env(ToolEnv):
    def gold(self, task):
        return [{"tool_calls": [{"name": "open_door", "arguments": {"number": 3}}]}, "done"]
def load_environment(): return Env(ROWS, tools=[open_door], rubric=Rubric(opened))
"""
    report = check(source)

    assert report.findings == ()
    assert report.figures.rewards["oracle"] == 1.0


def test_a_conversation_that_nothing_ends_is_noticed(check: Check) -> None:
    report = check(turns(most=-1))

    assert "got 50 turns" in told(report, "W313")


def test_gold_answers_are_also_said_in_the_format_that_is_asked_for(check: Check) -> None:
    tagged = check(
        "parser = XMLParser(['think', ('code', 'answer')])\n"
        "def read(parser, completion, answer): return float(parser.parse_answer(completion) == answer)\n"
        "def load_environment(): return SingleTurnEnv(ROWS, rubric=Rubric(read), parser=parser)\n"
    )
    boxed = check(
        "def box(completion, answer): return float(extract_boxed(text_of(completion[-1])) == answer)\n"
        + single("box")
    )

    assert (tagged.findings, tagged.figures.gold) == ((), "in the parser's format")
    assert (boxed.findings, boxed.figures.gold) == ((), "boxed")


def test_rollouts_that_are_compared_are_compared_with_wrong_ones(check: Check) -> None:
    report = check(
        "def relative(completions, answers):\n"
        "    hits = [right(c, a) for c, a in zip(completions, answers)]\n"
        "    return [hit - sum(hits) / len(hits) for hit in hits]\n" + single("relative")
    )

    assert codes(report) == []
    assert report.figures.rewards["oracle"] > 0.5 > report.figures.rewards["exchanged"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def load_environment():\n    while True: pass\n", "load_environment() takes more than 6 s"),
        (
            "async def slow(): await asyncio.sleep(1000)\n" + single("slow"),
            "scoring took more than 6 s; give it more with --timeout",
        ),
        (
            "class Slow(SingleTurnEnv):\n    async def setup_state(self, state): await asyncio.sleep(1000)\n"
            + SOUND.replace("SingleTurnEnv", "Slow"),
            "starting took more than 6 s; give it more with --timeout",
        ),
    ],
)
def test_what_hangs_is_ended(check: Check, source: str, words: str) -> None:
    started = time.monotonic()

    report = check(source, seconds=6.0, tasks=1)

    assert words in told(report, "E303")
    assert time.monotonic() - started < 120


def test_nothing_that_an_environment_started_outlives_the_check(check: Check, tmp_path: Path) -> None:
    check(
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n" + SOUND
    )

    assert ends(int((tmp_path / "pid").read_text()))


def ends(pid: int) -> bool:
    """A process that was told to die may take a moment, and its parent another to notice."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_what_is_missing_around_the_source_is_told(check: Check) -> None:
    bare = check("from proctor import *\n" + SOUND, head=HEAD.partition("\n")[2], pyproject=None)
    given = check(SOUND.replace("()", "(level)", 1), arguments={"level": 1})
    unknown = check(SOUND, pyproject=PYPROJECT + "[tool.proctor.eval]\nnum_exampels = 3\n")

    assert codes(bare) == ["W112", "W113"]
    assert codes(given) == ["W111"]
    assert "num_exampels" in told(unknown, "E108")
    assert not unknown.passes()


def test_a_folder_that_cannot_be_installed_is_a_warning_and_strict_makes_it_fail(check: Check) -> None:
    report = check(SOUND, pyproject=None)

    assert codes(report) == ["W113"]
    assert report.passes()
    assert not report.passes(strict=True)


def test_a_judge_can_be_named(check: Check, tmp_path: Path) -> None:
    report = check(
        "async def judged(judge, prompt, completion, answer, state):\n"
        "    return float(answer in await judge(prompt, completion, answer, state))\n"
        "def load_environment():\n"
        "    rubric = JudgeRubric(judged, judge_prompt='{response}')\n"
        "    return SingleTurnEnv(ROWS, rubric=rubric)\n",
        model="scripted",
    )

    assert report.findings == ()  # a scripted judge repeats what it is shown
    assert report.figures.rewards == {"oracle": 1.0, "empty": 0.0, "random": 0.0, "exchanged": 0.0}


def test_an_environment_that_is_not_there_is_a_mistake_of_the_caller(check: Check) -> None:
    with pytest.raises(ConfigError, match="No environment 'nowhere'"):
        check(SOUND, env_id="nowhere")


def test_every_code_has_a_test() -> None:
    folders = [Path(__file__).parent, Path(__file__).parents[1] / "dialects"]
    files = [file for folder in folders for file in folder.glob("test_*.py")]
    tests = "".join(file.read_text(encoding="utf-8") for file in files)

    assert [code for code in CODES if code not in tests] == []


TEMPLATES = """
from proctor.env.templates import Environment
env = Environment("my-env")
@env.template()
async def after(n: int):
    answer = yield f"What comes after {n}?"
    yield float(answer == str(n + 1))
tasks = [after(n=n) for n in range(4)]
def load_environment(): return env
"""


def test_an_environment_that_leaves_its_turns_to_an_agent_is_played_like_any_other(check: Check) -> None:
    report = check(TEMPLATES)

    assert codes(report) == ["N421"], "only what a perfect agent would say is unknown"
    assert report.figures.rewards == {"empty": 0.0, "random": 0.0}


# Rollouts that get into each other's way

TEMPLATE = """
env = Environment("game"{settings})
moves = []

@env.template()
async def game():
    {start}
    answer = yield "{prompt}"
    moves.append(answer)
    {between}
    yield {reward}

tasks = [game()]
def load_environment(): return env
"""


def game(
    start: str = "pass",
    reward: str = "0.5",
    *,
    prompt: str = "Move.",
    between: str = "pass",
    settings: str = "",
) -> str:
    return TEMPLATE.format(start=start, reward=reward, prompt=prompt, between=between, settings=settings)


@pytest.mark.parametrize(
    ("source", "manner"),
    [
        (game("moves.clear()", "float(len(moves) == 1)"), "at once"),
        (game("moves.append(1)", "float(len(moves) == 2)"), "at once"),
        (game(reward="float(len(moves) == 1)", settings=", capacity=1"), "one after the other"),
    ],
)
def test_rollouts_that_play_one_board_are_found_out(source: str, manner: str, check: Check) -> None:
    report = check(source)

    assert "E306" in codes(report)
    assert f"played {manner}" in told(report, "E306")
    assert "--runtime local" in told(report, "E306")


def test_rollouts_that_only_see_each_other_are_a_warning(check: Check) -> None:
    source = game("moves.append(1)", "0.5").replace('yield "Move."', 'yield f"Move {len(moves)}."')

    report = check(source)

    assert "W314" in codes(report)
    assert "E306" not in codes(report)


@pytest.mark.parametrize(
    "source",
    [
        SOUND,
        game("mine = []", "float(len(mine) == 0)"),
        game("number = random.random()", "number"),
        game("moves.clear()", "1 / 0"),
        game("moves.clear()", "float(len(moves) == 1)", settings=", capacity=1"),
    ],
)
def test_rollouts_that_share_nothing_or_cannot_be_compared_are_no_finding(source: str, check: Check) -> None:
    assert not {"E306", "W314"} & set(codes(check(source)))
