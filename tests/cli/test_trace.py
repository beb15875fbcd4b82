"""`proctor trace` and `proctor trace diff`, as their users see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len

if TYPE_CHECKING:
    from tests.conftest import Ran

    Run = Callable[..., Ran]

Play = Callable[..., str]
"""Plays the shop by a script, and gives the id of the run."""

SHOP = Path(__file__).parent.parent.parent / "examples" / "shop.py"
PIPED = {"COLUMNS": ""}
NARROW = {"COLUMNS": "80"}

LOOK: dict[str, Any] = {
    "when": "two apples",
    "reasoning": "First the prices.",
    "text": "Let me look.",
    "tool_calls": [
        {"id": "a", "name": "price", "arguments": {"item": "apple"}},
        {"id": "b", "name": "price", "arguments": {"item": "pear"}},
    ],
}
BUY = {
    "when": "two apples",
    "tool_calls": [
        {"id": "c", "name": "buy", "arguments": {"item": "apple", "count": 2}},
        {"id": "d", "name": "buy", "arguments": {"item": "bread"}},
    ],
}
DONE = {"when": "two apples", "text": "All is \u001b[31mred\u001b[0m in the [bold]basket[/bold]."}
RIGHT = [LOOK, BUY, DONE]
FAILING = {"when": "cheapest", "error": "timeout", "text": "busy"}


@pytest.fixture
def play(proctor: Run, tmp_path: Path) -> Play:
    def run(steps: Sequence[Any], *words: str, env: Path | str = SHOP, tasks: int = 1) -> str:
        (tmp_path / "script.jsonl").write_text("\n".join(map(json.dumps, steps)))
        model = ("-m", "scripted", "-b", "script.jsonl", "-c", "1")
        done = proctor("eval", "run", str(env), *model, "-n", str(tasks), "-r", "1", "-s", "--json", *words)
        return str(json.loads(done.stdout)["run"]["id"])

    return run


def section(text: str, name: str) -> list[str]:
    """The lines under a heading."""
    lines = text.split(f"\n{name}\n")[1].split("\n\n")[0].splitlines()
    return [line.strip() for line in lines]


def test_a_rollout_is_told_in_order_with_results_beside_their_calls(proctor: Run, play: Play) -> None:
    run = play(RIGHT)

    shown = proctor("trace", f"{run}/0/0", environ=PIPED)

    assert shown.code == 0
    head, *told = shown.stdout.split("\n\n")
    assert head.splitlines()[0] == "shop  with  scripted"
    assert head.splitlines()[1].startswith(f"{run}/0/0, 2")
    assert head.splitlines()[1].endswith(", stopped by no_tools_called")
    assert head.splitlines()[2].startswith("scored   reward 1.000   3 turns   ")
    assert told[0] == "user\n  Buy two apples and a bread."
    first = told[1].splitlines()
    assert first[0].startswith("turn 1  assistant  ")
    assert first[0].endswith("6 in, 3 out · tool_calls")
    assert first[1:] == [
        "  reasoning",
        "  · First the prices.",
        "  Let me look.",
        '  → price(item="apple")',
        "    ← 0.5",
        '  → price(item="pear")',
        "    ← ValueError: we do not sell 'pear'; we sell apple, bread, cheese",
    ]
    assert told[3].splitlines()[1] == "  All is red in the [bold]basket[/bold]."
    assert section(shown.stdout, "Score") == ["reward        1.000"]
    assert "buy_calls                2.000" in section(shown.stdout, "Metrics")
    assert section(shown.stdout, "Right answer") == ['["apple","apple","bread"]']
    assert [line.split()[0] for line in section(shown.stdout, "Time")][:3] == [
        "setup",
        "generation",
        "scoring",
    ]
    assert "\x1b" not in shown.stdout


@pytest.mark.parametrize("said", ["q" * 2_000_000, "\x1b]" * 200_000], ids=["letters", "escapes"])
def test_an_endless_line_takes_no_time_by_the_square_of_its_length(
    proctor: Run, play: Play, said: str
) -> None:
    run = play([said])

    assert "turn 1  assistant" in proctor("trace", run, environ=NARROW, timeout=60).stdout


WORKSHOP = """
from proctor import Environment

env = Environment("workshop")
work = env.workspace(isolation="none")


@env.template()
async def write():
    (work.path / "old.txt").write_text("old\\n")
    yield "Write it."
    yield float((work.path / "new.txt").exists())


tasks = [write()]
"""


def test_files_that_changed_are_shown_with_their_diffs(proctor: Run, play: Play, tmp_path: Path) -> None:
    (tmp_path / "workshop.py").write_text(WORKSHOP)
    command = "printf 'one\\n\\033[31mtwo\\n' > new.txt; rm old.txt; printf '\\0' > image"
    call = {"id": "a", "name": "bash", "arguments": {"command": command}}
    run = play([{"tool_calls": [call]}, "Done."], env="workshop.py")

    told = section(proctor("trace", run, environ=PIPED).stdout, "Files")
    row = json.loads(proctor("trace", run, "--json").stdout)

    assert told[0].startswith("+ image  1 bytes, binary, sha256 6e340b9cffb3")
    assert told[1:6] == ["+ new.txt  13 bytes", "@@ -0,0 +1,2 @@", "+one", "+two", "- old.txt  4 bytes"]
    assert [change["path"] for change in row["file_changes"]] == ["image", "new.txt", "old.txt"]


def test_a_failed_rollout_shows_its_error_and_its_earlier_attempts(proctor: Run, play: Play) -> None:
    run = play([*RIGHT, FAILING], "--max-retries", "1", tasks=2)

    shown = proctor("trace", f"{run[:6]}/1", environ=NARROW).stdout

    assert "\nmodel error   0 turns" in shown
    assert "\nmodel call failed  " in shown
    assert section(shown, "Error") == ["ModelTimeoutError: busy", "while playing"]
    tried = section(shown, "Earlier attempts")
    assert tried[0].startswith("try 1  model error  ")
    assert tried[1] == "ModelTimeoutError: busy"


def test_a_bug_in_an_environment_shows_its_traceback(proctor: Run, play: Play, tmp_path: Path) -> None:
    env = tmp_path / "broken.py"
    env.write_text(
        "from proctor import MultiTurnEnv, Rubric\n\n\n"
        "class Broken(MultiTurnEnv):\n"
        "    async def env_response(self, messages, state):\n"
        "        raise KeyError('lost')\n\n\n"
        "def load_environment():\n"
        "    return Broken([{'question': 'hi', 'answer': ''}], rubric=Rubric())\n"
    )
    run = play(["hello"], env=env)

    lines = section(proctor("trace", run, environ=PIPED).stdout, "Error")

    assert "KeyError" in lines[0]
    assert any(line.startswith("at ") and line.endswith("broken.py:6 in env_response") for line in lines)


def test_long_texts_are_folded_unless_all_is_wanted(proctor: Run, play: Play) -> None:
    long = "\n".join(f"line {number}" for number in range(100))
    run = play([{"text": long}])

    folded = proctor("trace", run, environ=NARROW).stdout
    full = proctor("trace", run, "--full", environ=NARROW).stdout

    assert "  line 8\n  … 88 more lines, shown by --full …\n  line 97\n" in folded
    assert "line 50" not in folded
    assert "line 50" in full
    assert "--full" not in full


def test_no_line_is_wider_than_the_terminal(proctor: Run, play: Play) -> None:
    code = "import os\nprint('x' * 200)  # " + "long " * 30
    call = {"id": "a", "name": "price", "arguments": {"item": code, "deep": {"a": list(range(60))}}}
    run = play([{"text": "word " * 50, "tool_calls": [call]}, {"text": "漢字" * 60}])

    shown = proctor("trace", run, "--full", environ=NARROW).stdout

    assert max(map(cell_len, shown.splitlines())) <= 80
    assert "      item:\n        import os\n        print('x' * 200)" in shown


def test_a_judge_stands_beside_the_conversation_and_its_request_on_demand(
    proctor: Run, play: Play, tmp_path: Path
) -> None:
    env = tmp_path / "judged.py"
    env.write_text(
        "from proctor import JudgeRubric, Scripted, SingleTurnEnv\n\n\n"
        "def load_environment():\n"
        "    judge = Scripted(['It does.\\nyes'], name='gpt-4.1-mini')\n"
        "    return SingleTurnEnv([{'question': '3+4?', 'answer': '7'}], rubric=JudgeRubric(judge=judge))\n"
    )
    run = play([{"text": "seven"}], env=env)

    shown = proctor("trace", run, environ=PIPED).stdout
    raw = proctor("trace", run, "--raw-calls", environ=PIPED).stdout

    assert "\njudge gpt-4.1-mini  " in shown
    assert "  It does.\n  yes\n" in shown
    assert "<reference_answer>" not in shown
    assert "  was sent 1 message\n  > user\n" in raw
    assert "  >   <reference_answer>\n" in raw
    assert any("gpt-4.1-mini" in line and "$0.0000" in line for line in section(shown, "Tokens"))


def test_what_a_model_was_really_sent_is_shown_where_it_differs(
    proctor: Run, play: Play, tmp_path: Path
) -> None:
    env = tmp_path / "trimmed.py"
    env.write_text(
        "from proctor import MultiTurnEnv, Rubric\n\n\n"
        "class Trimmed(MultiTurnEnv):\n"
        "    async def get_prompt_messages(self, state):\n"
        "        whole = await super().get_prompt_messages(state)\n"
        "        return whole if len(whole) < 3 else [{'role': 'user', 'content': 'in short'}, whole[-1]]\n\n"
        "    async def env_response(self, messages, state):\n"
        "        return [{'role': 'user', 'content': 'go on'}]\n\n\n"
        "def load_environment():\n"
        "    rows = [{'question': 'begin', 'answer': ''}]\n"
        "    return Trimmed(rows, rubric=Rubric(), max_turns=2)\n"
    )
    run = play([{"text": "one"}, {"text": "two"}], env=env)

    raw = proctor("trace", run, "--raw-calls", environ=PIPED).stdout
    usual = proctor("trace", play([{"text": "one"}]), "--raw-calls", environ=PIPED).stdout

    second = raw.split("turn 2  assistant")[1].splitlines()[1:6]
    assert second == [
        "  was sent 2 messages",
        "  > user",
        "  >   in short",
        "  > user: message 3 of the conversation",
        "  two",
    ]
    assert "was sent" not in proctor("trace", run, environ=PIPED).stdout
    assert "Every model call was sent the conversation as it stands above." in usual


def test_the_row_is_given_as_it_is(proctor: Run, play: Play, tmp_path: Path) -> None:
    run = play(RIGHT)
    (path,) = tmp_path.glob("outputs/evals/*/*/results.jsonl")

    shown = json.loads(proctor("trace", f"{run}/0", "--json").stdout)

    assert shown == json.loads(path.read_text())


def test_a_rollout_that_is_not_there_is_missed_in_one_sentence(proctor: Run, play: Play) -> None:
    run = play(RIGHT)

    missing = proctor("trace", f"{run}/7/0")
    unknown = proctor("trace", "nobody/0/0")

    assert (missing.code, missing.stderr) == (
        2,
        f"Error: Run {run} has no rollout '7/0' among its 1; `proctor jobs {run}` lists them.\n",
    )
    assert unknown.code == 2
    assert unknown.stderr.startswith("Error: No run 'nobody' in outputs or ")
    assert proctor("trace", f"{run}/0", "--dir", "state").code == 2


def test_a_damaged_row_is_refused_in_one_sentence(proctor: Run, play: Play, tmp_path: Path) -> None:
    run = play(RIGHT)
    (path,) = tmp_path.glob("outputs/evals/*/*/results.jsonl")
    path.write_text(json.dumps({**json.loads(path.read_text()), "timing": "long"}) + "\n")

    shown = proctor("trace", f"{run}/0")

    assert (shown.code, shown.stdout) == (2, "")
    assert shown.stderr.startswith(f"Error: {run}/0/0: This rollout's row cannot be read: ")
    assert json.loads(proctor("trace", f"{run}/0", "--json").stdout)["timing"] == "long"


# Two of them


def test_the_first_divergence_is_told_with_both_sides_after_it(proctor: Run, play: Play) -> None:
    first = play(RIGHT)
    bread = {"id": "z", "name": "price", "arguments": {"item": "bread"}}
    other_look = {**LOOK, "tool_calls": [LOOK["tool_calls"][0], bread]}
    done = {**DONE, "text": "All is in my basket."}
    second = play([other_look, BUY, done])

    shown = proctor("trace", "diff", f"{first}/0", f"{second}/0/0", environ=NARROW)

    assert shown.code == 0
    lines = shown.stdout.splitlines()
    assert lines[1].split()[:5] == ["A", f"{first}/0/0", "1.000", "3", lines[1].split()[4]]
    assert lines[3].split()[:4] == ["B", "−", "A", "0"]
    at = lines.index("First divergence  turn 1, assistant: other arguments of price")
    assert lines[at - 1] == "The first message is the same."
    assert lines[at + 1 : at + 6] == [
        '  A   item = "pear"',
        '  B   item = "bread"',
        "  and another result of price",
        "  A   ValueError: we do not sell 'pear'; we sell apple, bread, cheese",
        "  B   2.0",
    ]
    assert lines[at + 7] == "After it"
    assert "turn 2, assistant  the same" in lines
    assert lines[-2:] == [
        "  A   All is [-red-] in [-the [bold]basket[/bold].-]",
        "  B   All is in {+my basket.+}",
    ]
    assert max(map(len, lines)) <= 80


def test_rollouts_that_are_the_same_are_said_to_be(proctor: Run, play: Play) -> None:
    first, second = play(RIGHT), play(RIGHT)

    shown = proctor("trace", "diff", f"{first}/0", f"{second}/0", environ=PIPED).stdout
    document = json.loads(proctor("trace", "diff", f"{first}/0", f"{second}/0", "--json").stdout)

    assert shown.splitlines()[-1] == "Both say and do the same: 4 messages of 3 turns."
    assert (document["identical"], document["same_messages"]) == (True, 4)
    assert document["first_divergence"] is None


def test_rollouts_of_different_tasks_diverge_in_their_prompt(proctor: Run, play: Play) -> None:
    run = play([*RIGHT, FAILING], tasks=2)

    document = json.loads(proctor("trace", "diff", f"{run}/0", f"{run}/1", "--json").stdout)

    first = document["first_divergence"]
    assert (first["role"], first["a"]["message"], first["differences"][0]["kind"]) == ("user", 0, "wording")
    assert [side["outcome"] for side in (document["a"], document["b"])] == ["scored", "model_error"]
    assert [pair["b"] for pair in document["pairs"]][1:] == [None, None, None]
