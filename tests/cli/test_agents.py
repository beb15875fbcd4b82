"""Agents on the command line: who works on a task file, on how many of its tasks, and what is kept of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

from proctor.cli.app import ELSEWHERE
from proctor.cli.app import proctor as proctor_group

if TYPE_CHECKING:
    from tests.conftest import Provider, Ran

    Run = Callable[..., Ran]

LETTERS = '''
"""How often is a letter in a word? A tool knows."""
from proctor import Environment

env = Environment("letters")

@env.tool
def count(word: str, letter: str) -> int:
    """How often a letter is in a word."""
    return word.count(letter)

@env.template()
async def letters(word: str, letter: str = "r"):
    answer = yield f"How many {letter} are in {word}?"
    yield float(answer.strip() == str(word.count(letter)))

tasks = [letters(word=word) for word in ("strawberry", "cherry", "fig")]

async def knowing(desk):
    word = desk.messages[-1]["content"].split()[-1].rstrip("?")
    result = await desk.use({"id": "k", "name": "count", "arguments": '{"word": "%s", "letter": "r"}' % word})
    return result["content"]

class Wrong:
    def __init__(self, answer="none", max_steps=3):
        self.answer = answer

    async def __call__(self, desk):
        return self.answer

class Broken:
    async def __call__(self, desk):
        if "cherry" in desk.messages[-1]["content"]:
            raise OSError("no cherries")
        return "3"
'''


def asks(word: str) -> dict[str, Any]:
    return {
        "when": word,
        "tool_calls": [{"name": "count", "arguments": {"word": word, "letter": "r"}}],
    }


SCRIPT = [
    asks("strawberry"),
    {"when": "strawberry", "text": "3"},
    asks("cherry"),
    {"when": "cherry", "text": "2"},
    asks("fig"),
    {"when": "fig", "text": "0"},
]


@pytest.fixture
def letters(proctor: Run, tmp_path: Path) -> Run:
    """Runs `proctor eval run tasks.py …` with the scripted model."""
    (tmp_path / "tasks.py").write_text(LETTERS)
    (tmp_path / "script.jsonl").write_text("\n".join(json.dumps(step) for step in SCRIPT))

    def run(*words: str, model: str = "scripted", **settings: Any) -> Ran:
        which = ("-m", model, "-b", "script.jsonl") if model else ()
        return proctor("eval", "run", "tasks.py", *words, *which, **settings)

    return run


def words_of(ran: Ran) -> list[str]:
    return [row["prompt"][-1]["content"].split()[-1].rstrip("?") for row in ran.rows]


# Which tasks


def test_a_task_file_is_tried_with_its_first_task_once_and_the_report_says_so(letters: Run) -> None:
    ran = letters()

    assert ran.code == 0
    report = " ".join(ran.stdout.split())
    assert "agent tool_loop, at most 10 steps" in report
    assert "the first task of the file (--all takes every one), 1 rollout each" in report
    assert "1 of 1 rollouts scored" in report


def test_all_and_group_take_every_task_so_often(letters: Run) -> None:
    ran = letters("claude", "--all", "--group", "2", "-c", "1", "--json")

    assert ran.code == 0
    assert sorted(words_of(ran)) == ["cherry", "cherry", "fig", "fig", "strawberry", "strawberry"]
    assert [row["reward"] for row in ran.rows] == [1.0] * 6
    assert ran.metadata["agent"] == "claude"
    assert ran.metadata["max_steps"] == 10
    assert ran.metadata["model"] == "scripted"


@pytest.mark.parametrize("words", [("-n", "2"), ("--group-size", "2"), ("-r", "2")])
def test_one_number_given_leaves_the_other_at_one(letters: Run, words: tuple[str, str]) -> None:
    assert letters(*words, "-c", "1", "--json").summary["scored"] == 2


def test_tasks_are_named_by_id_or_by_place(letters: Run) -> None:
    first = letters("--task-ids", "2,0", "-c", "1", "--json")
    ids = {word: row["example_id"] for word, row in zip(words_of(first), first.rows, strict=True)}

    again = letters("--task-ids", ids["fig"], "--json")

    assert ids.keys() == {"strawberry", "fig"}
    assert words_of(again) == ["fig"]
    assert again.metadata["selection"] == f"the named tasks {ids['fig']} in dataset order"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--task-ids", "7"), "No task is called '7'; known: letters-"),
        (
            ("--task-ids", "0", "-n", "2"),
            "--task-ids names the tasks, and -n 2 counts them; give one",
        ),
        (("--all", "-n", "2"), "--all takes every task, and -n 2 does not; give one of them."),
        (("--max-steps", "0"), "--max-steps is 0, and must be at least 1."),
        (("claude", "--agent-args", '{"steps": 1}'), "Agent 'claude' has no setting 'steps'"),
        (("gpt-9",), "'gpt-9' is not an agent, and the model is already 'scripted'"),
        (("tasks.py:Right",), "tasks.py has no 'Right'"),
    ],
)
def test_what_cannot_be_meant_is_refused(letters: Run, words: tuple[str, ...], sentence: str) -> None:
    ran = letters(*words)

    assert ran.code == 2
    assert sentence in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("words", [(), ("-m", "scripted")])
def test_a_second_environment_in_place_of_an_agent_is_told_about_commas(
    proctor: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "environments" / "my_env").mkdir(parents=True)

    ran = proctor("eval", "run", "echo", "my-env", *words)

    assert ran.code == 2
    assert "to evaluate several environments, put commas between them: echo,my-env" in ran.stderr


# Who works


def test_run_may_be_left_out_and_a_model_may_stand_for_the_agent(letters: Run, proctor: Run) -> None:
    letters()

    ran = proctor("eval", "tasks.py", "scripted", "-b", "script.jsonl", "--json")

    assert (ran.code, ran.metadata["agent"], ran.metadata["model"]) == (0, "tool_loop", "scripted")
    assert ran.rows[0]["reward"] == 1.0


def test_claude_is_asked_the_way_anthropic_is(letters: Run, provider: Callable[..., Provider]) -> None:
    reply = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "3"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }
    server = provider({"body": reply})

    words = ("claude", "--json", "-b", server.url.removesuffix("/v1"))
    ran = letters(*words, model="", environ={"ANTHROPIC_API_KEY": "k"})

    assert ran.code == 0, ran.stderr
    assert server.requests[0].path == "/v1/messages"
    assert server.requests[0].body["model"] == "claude-sonnet-4-5"
    assert [tool["name"] for tool in server.requests[0].body["tools"]] == ["count"]
    assert "agent 'claude' works with it unless -m names another" in ran.stderr


@pytest.mark.parametrize(
    ("words", "key", "model", "url", "client_type"),
    [
        (["claude"], "ANTHROPIC_API_KEY", "claude-sonnet-4-5", "anthropic.com", "anthropic_messages"),
        (
            ["claude", "-m", "claude-haiku-4-5"],
            "ANTHROPIC_API_KEY",
            "claude-haiku-4-5",
            "anthropic.com",
            "anthropic_messages",
        ),
        (["openai"], "OPENAI_API_KEY", "gpt-5", "openai.com", "openai_responses"),
        (["openai", "-m", "gpt-5-mini"], "OPENAI_API_KEY", "gpt-5-mini", "openai.com", "openai_responses"),
        (["gemini"], "GEMINI_API_KEY", "gemini-2.5-flash", "googleapis.com", "gemini"),
        (["claude", "-m", "gpt-4.1"], "OPENAI_API_KEY", "gpt-4.1", "openai.com", "openai_chat_completions"),
        (["gpt-4.1-mini"], "OPENAI_API_KEY", "gpt-4.1-mini", "openai.com", "openai_chat_completions"),
        (
            ["claude", "--provider", "openrouter"],
            "OPENROUTER_API_KEY",
            "claude-sonnet-4-5",
            "openrouter.ai",
            "openai_chat_completions",
        ),
        (["my-alias"], "NO_KEY", "served", "127.0.0.1", "openai_chat_completions"),
        (["claude", "-m", "my-alias"], "NO_KEY", "served", "127.0.0.1", "openai_chat_completions"),
    ],
)
def test_the_agent_decides_the_model_unless_another_is_named(
    letters: Run, tmp_path: Path, words: list[str], key: str, model: str, url: str, client_type: str
) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "endpoints.toml").write_text(
        '[[endpoint]]\nendpoint_id = "my-alias"\nmodel = "served"\nurl = "http://127.0.0.1:9/v1"\n'
    )

    ran = letters(*words, "--dry-run", "--json", model="", environ={key: "secret"})

    assert ran.code == 0, ran.stderr
    endpoint = json.loads(ran.stdout)["endpoint"]
    assert (endpoint["model"], endpoint["client_type"]) == (model, client_type)
    assert url in endpoint["url"]


def test_a_preset_without_its_key_says_which_one(letters: Run) -> None:
    ran = letters("claude", model="", environ={"ANTHROPIC_API_KEY": ""})

    assert ran.code == 2
    assert "No API key for model 'claude-sonnet-4-5': set ANTHROPIC_API_KEY" in ran.stderr


@pytest.mark.parametrize("agent", ["tasks.py:knowing", "tasks:knowing"])
def test_an_agent_of_ones_own_uses_the_tools_by_itself(letters: Run, agent: str) -> None:
    ran = letters(agent, "--all", "--json")

    assert ran.code == 0, ran.stderr
    assert [row["reward"] for row in ran.rows] == [1.0, 1.0, 1.0]
    assert ran.metadata["agent"] == agent
    assert ran.summary["usage"] == {}, "it asked no model"


def test_settings_reach_an_agent_of_ones_own(letters: Run) -> None:
    ran = letters("tasks.py:Wrong", "--agent-args", '{"answer": "3"}', "--max-steps", "4", "--json")

    assert ran.rows[0]["reward"] == 1.0
    assert (ran.metadata["agent_args"], ran.metadata["max_steps"]) == ({"answer": "3"}, 4)


def test_an_agent_that_fails_on_one_task_leaves_the_others_alone(letters: Run) -> None:
    ran = letters("tasks.py:Broken", "--all", "--json")

    assert ran.code == 1
    assert ran.summary["outcomes"] == {"scored": 2, "agent_error": 1}
    assert "Broken raised OSError: no cherries" in json.dumps(ran.summary["errors"])


def test_an_environment_that_owns_its_turns_refuses_an_agent(proctor: Run) -> None:
    named = proctor("eval", "run", "echo", "claude", "-m", "scripted")
    keyless = proctor("eval", "run", "echo", "claude", environ={"ANTHROPIC_API_KEY": ""})
    model = proctor("eval", "run", "echo", "gpt-4.1-mini")
    steps = proctor("eval", "run", "echo", "-m", "scripted", "--max-steps", "3")

    assert [ran.code for ran in (named, keyless, model, steps)] == [2, 2, 2, 2]
    assert "echo owns its turns; leave out 'claude'." in named.stderr
    assert keyless.stderr == named.stderr
    assert "leave out 'gpt-4.1-mini'. A model to evaluate is named by -m." in model.stderr
    assert "echo owns its turns and has no agent; leave out --max-steps." in steps.stderr


# Steps, resuming, workers, suites


def test_out_of_steps_is_truncated_and_said(letters: Run) -> None:
    ran = letters("--max-steps", "1", "--json")

    assert ran.code == 0
    (row,) = ran.rows
    assert (row["outcome"], row["stop_condition"], row["is_truncated"]) == ("truncated", "max_steps", True)
    assert row["reward"] == 0.0
    assert ran.metadata["max_steps"] == 1


def test_a_run_goes_on_only_with_the_same_agent_and_steps(letters: Run) -> None:
    first = letters("claude", "--json", "-o", "out")
    folder = str(first.folder)

    other = letters("openai", "-R", folder)
    more_steps = letters("claude", "--max-steps", "20", "-R", folder)
    more_tasks = letters("claude", "--all", "-c", "1", "-R", folder, "--json")

    assert (other.code, more_steps.code, more_tasks.code) == (2, 2, 0)
    assert "agent was 'claude' and is now 'openai'" in other.stderr
    assert "--max-steps was 10 and is now 20" in more_steps.stderr
    assert len(more_tasks.rows) == 3


def test_workers_make_the_same_agent(letters: Run) -> None:
    ran = letters("tasks.py:knowing", "--all", "-w", "2", "--json")

    assert ran.code == 0, ran.stderr
    assert [row["reward"] for row in ran.rows] == [1.0, 1.0, 1.0]


def test_a_suite_chooses_agents_steps_and_tasks(letters: Run, proctor: Run, tmp_path: Path) -> None:
    letters()
    (tmp_path / "suite.toml").write_text(
        'model = "scripted"\napi_base_url = "script.jsonl"\nenv_id = "tasks.py"\n\n'
        '[[eval]]\nagent = "claude"\nmax_steps = 4\ntask_ids = [0, 2]\ngroup = 2\n\n'
        '[[eval]]\nagent = "tasks.py:Wrong"\nagent_args = { answer = "2" }\ntask_ids = ["1"]\n'
    )

    ran = proctor("eval", "run", "suite.toml", "gemini", "--json", "-c", "1")

    assert ran.code == 0, ran.stderr
    assert "No effect, because suite.toml sets the evaluations: agent, --max-concurrent." in ran.stderr
    first, second = json.loads(ran.stdout)["runs"]
    assert (first["summary"]["scored"], second["summary"]["scored"]) == (4, 1)
    assert second["summary"]["reward"]["mean"] == 1.0


def test_a_folder_of_tasks_is_tried_like_a_file(letters: Run, proctor: Run, tmp_path: Path) -> None:
    letters()
    (tmp_path / "some").mkdir()
    (tmp_path / "tasks.py").rename(tmp_path / "some" / "tasks.py")

    ran = proctor("eval", "run", "./some", "-m", "scripted", "-b", "script.jsonl", "--json")

    assert (ran.code, ran.summary["scored"]) == (0, 1), ran.stderr


# When the time is up

SLOW = """
import asyncio
from proctor import Environment

env = Environment("digging")

@env.tool
async def dig() -> str:
    "Dig on and on."
    await asyncio.sleep(3600)

@env.template()
async def find(place: str):
    if place == "nowhere":
        await asyncio.sleep(3600)
    answer = yield f"Is there gold in the {place}?"
    yield 1.0 if "maybe" in answer else 0.0

tasks = [find(place=place) for place in ("garden", "river")]
"""
DIGS = [
    {"when": "garden", "text": "maybe, I dig", "tool_calls": [{"name": "dig", "arguments": {}}]},
    {"when": "river", "text": "maybe"},
]


@pytest.fixture
def digging(proctor: Run, tmp_path: Path) -> Run:
    (tmp_path / "dig.py").write_text(SLOW)
    (tmp_path / "digs.jsonl").write_text("\n".join(json.dumps(step) for step in DIGS))

    def run(*words: str) -> Ran:
        which = ("-m", "scripted", "-b", "digs.jsonl", "--all", "--timeout", "0.3", "-o", "out")
        return proctor("eval", "run", "dig.py", *which, *words)

    return run


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_agent_whose_time_is_up_is_scored_on_what_it_did(digging: Run, workers: str) -> None:
    ran = digging("--json", "-w", workers)

    assert ran.code == 0, ran.stderr
    late, done = sorted(ran.rows, key=lambda row: row["prompt"][0]["content"])
    assert (late["outcome"], late["reward"], late["error"]) == ("timeout", 1.0, None)
    assert late["stop_condition"] == "timeout"
    assert late["completion"][-1]["content"] == "maybe, I dig"
    assert (done["outcome"], done["reward"]) == ("scored", 1.0)
    assert (ran.summary["scored"], ran.summary["timed_out"], ran.summary["coverage"]) == (2, 1, 1.0)
    assert ran.summary["reward"]["mean"] == 1.0
    assert ran.summary["errors"] == []


def test_the_report_says_how_many_were_cut_short_and_the_trace_shows_one(digging: Run, proctor: Run) -> None:
    ran = digging()

    report = " ".join(ran.stdout.split())
    assert "2 of 2 rollouts scored (100.0%), 1 of them cut short by --timeout" in report
    jobs = json.loads(proctor("jobs", "latest", "--json", "--dir", "out").stdout)
    (late,) = [brief for brief in jobs["rollouts"] if brief["outcome"] == "timeout"]
    shown = " ".join(proctor("trace", late["trace"], "--dir", "out").stdout.split())
    assert "stopped by timeout" in shown
    assert "timeout reward 1.000" in shown
    assert "maybe, I dig" in shown
    failed = json.loads(proctor("jobs", "latest", "--failed", "--json", "--dir", "out").stdout)
    assert failed["rollouts"] == []


def test_a_scored_timeout_is_not_played_again_and_more_time_for_it_is_warned_of(digging: Run) -> None:
    first = digging("--json")
    folder = json.loads(first.stdout)["folder"]

    again = digging("--json", "--timeout", "60", "--resume", folder)

    assert again.code == 0, again.stderr
    assert again.summary == first.summary
    assert (
        "--timeout was 0.3 and is now 60; 1 rollouts that ran out of time keep their scores" in again.stderr
    )


def test_a_start_that_takes_too_long_names_its_phase_and_what_to_raise(proctor: Run, tmp_path: Path) -> None:
    (tmp_path / "dig.py").write_text(SLOW.replace('("garden", "river")', '("nowhere",)'))
    words = ("-m", "scripted", "-o", "out", "--start-timeout", "0.3")
    ran = proctor("eval", "run", "dig.py", *words)

    assert ran.code == 1
    report = " ".join(ran.stdout.split())
    told = "starting took more than 0.3 s; give it more with --start-timeout"
    assert f"DeadlineError: {told} (dig.py:15 in find; while starting, task" in report
    (late,) = json.loads(proctor("jobs", "latest", "--json", "--dir", "out").stdout)["rollouts"]
    assert (late["outcome"], late["reward"], late["error"]["phase"]) == ("timeout", None, "setup")
    assert "while starting" in proctor("trace", late["trace"], "--dir", "out").stdout


# What people know from hud


def test_full_takes_every_task_with_a_hundred_steps_and_yes_asks_nothing(letters: Run) -> None:
    ran = letters("--full", "-y", "--dry-run", "--json")

    assert ran.code == 0, ran.stderr
    config = json.loads(ran.stdout)["config"]
    assert (config["num_examples"], config["max_steps"]) == (-1, 100)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--auto-respond",), "--auto-respond has no counterpart"),
        (("--config", "claude.max_steps=30"), """--agent-args '{"max_steps": 30}'"""),
        (("--runtime", "hud"), "--runtime hud is --runtime hosted here"),
        (("--gateway",), "Provider proctor is the server you are logged in to, and you are not logged in"),
    ],
)
def test_a_flag_of_hud_is_answered_with_what_to_type(
    letters: Run, words: tuple[str, ...], sentence: str
) -> None:
    ran = letters(*words)

    assert ran.code == 2
    assert sentence in ran.stderr


def test_the_runtime_of_hud_is_answered_with_ours() -> None:
    with pytest.raises(ImportError, match="HUDRuntime is called HostedRuntime here"):
        from proctor import HUDRuntime  # noqa: F401


def test_a_command_of_another_tool_is_answered_with_ours(proctor: Run) -> None:
    ran = proctor("deploy", ".")

    assert ran.code == 2
    assert "Error: No such command 'deploy'; use `proctor env push`." in ran.stderr


@pytest.mark.parametrize(
    ("word", "hint"),
    [("evl", "did you mean `proctor eval`?"), ("qqq", "`proctor --help` lists them all.")],
)
def test_a_misspelt_command_is_answered_with_the_nearest_one(proctor: Run, word: str, hint: str) -> None:
    ran = proctor(word, "run")

    assert ran.code == 2
    assert f"Error: No such command '{word}'; {hint}" in ran.stderr


def test_every_such_answer_names_a_command_that_exists() -> None:
    for words in ELSEWHERE.values():
        first, second = words.split()[:2]
        group = proctor_group.get_command(click.Context(proctor_group), first)
        assert isinstance(group, click.Group)
        assert second in group.list_commands(click.Context(group))
