"""Which agent a word means, and what is said when it means none."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from proctor import Environment, Scripted, ToolLoop, create_agent, evaluate
from proctor.agents.resolve import is_import_path
from proctor.contracts import Desk
from proctor.errors import ConfigError, UnknownNameError

MINE = '''
"""Agents of somebody's own."""

class Careful:
    def __init__(self, tries=1):
        self.tries = tries

    async def __call__(self, desk):
        for _ in range(self.tries):
            reply = await desk.ask()
        return reply.text

async def hasty(desk, answer="42"):
    return answer

def forgot_async(desk):
    return "42"

def broken():
    raise OSError("no key")

ready = Careful(3)
nothing = 7
'''


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    return "mine.py"


def made(word: str, **settings: Any) -> Any:
    return create_agent(word, **settings)


@pytest.mark.parametrize(
    ("word", "model", "provider", "client_type"),
    [
        ("claude", "claude-sonnet-4-5", "anthropic", None),
        ("openai", "gpt-5", "openai", "openai_responses"),
        ("gemini", "gemini-2.5-flash", "gemini", None),
        ("openai_compatible", None, None, None),
        ("tool_loop", None, None, None),
    ],
)
def test_presets_are_the_tool_loop_with_a_model_of_their_own(
    word: str, model: str | None, provider: str | None, client_type: str | None
) -> None:
    agent = made(word, max_steps=7)

    assert isinstance(agent, ToolLoop)
    assert (agent.name, agent.max_steps) == (word, 7)
    prefers = agent.prefers
    assert (prefers.model, prefers.provider, prefers.client_type) == (model, provider, client_type)


def test_any_model_works_in_the_plain_loop() -> None:
    agent = made("qwen/qwen3:free", system_prompt="Think.")

    assert isinstance(agent, ToolLoop)
    assert (agent.name, agent.prefers.model, agent.system_prompt) == (
        "tool_loop",
        "qwen/qwen3:free",
        "Think.",
    )


@pytest.mark.parametrize(
    ("word", "is_path"),
    [
        ("mine.py:Careful", True),
        ("agents/mine.py:hasty", True),
        ("package.module:name", True),
        ("mine:hasty", True),
        ("package:Name", True),
        ("llama3:latest", False),
        ("llama3.1:latest", False),
        ("deepseek/deepseek-r1:free", False),
        ("gpt-4.1-mini", False),
        ("claude", False),
    ],
)
def test_import_paths_are_told_from_models_with_a_colon(mine: str, word: str, is_path: bool) -> None:
    assert is_import_path(word) is is_path


def test_a_class_an_object_and_an_async_function_are_agents(mine: str) -> None:
    assert made("mine.py:Careful", tries=2).name == "Careful"
    assert made("mine.py:ready").name == "Careful"
    assert made("mine:hasty").name == "hasty"
    assert asyncio.run(made("mine.py:hasty")(None)) == "42"
    assert asyncio.run(made("mine.py:hasty", answer="43")(None)) == "43"


@pytest.mark.parametrize(
    ("word", "settings", "sentence"),
    [
        ("mine.py", {}, "mine.py is a file; name the agent in it, as in mine.py:MyAgent."),
        ("mine.py:Carefull", {}, "mine.py has no 'Carefull'; did you mean 'Careful'?"),
        ("yours.py:Careful", {}, "There is no agent file 'yours.py'."),
        ("no.such.module:Name", {}, "Importing no.such.module failed: ModuleNotFoundError: No module named"),
        ("mine.py:Careful", {"trials": 2}, "has no setting 'trials'; did you mean 'tries'?"),
        ("mine.py:ready", {"tries": 2}, "'mine.py:ready' is already an agent and takes no settings"),
        ("mine.py:hasty", {"max_steps": 2}, "has no setting 'max_steps'; known: answer."),
        ("mine.py:forgot_async", {}, "is a plain function, not an agent; an agent is `async def name(desk)`"),
        ("mine.py:nothing", {}, "is of type int, not an agent;"),
        ("mine.py:broken", {}, "Agent 'mine.py:broken' cannot be created: OSError: no key"),
        ("claude", {"max_stepz": 3}, "Agent 'claude' has no setting 'max_stepz'; did you mean 'max_steps'?"),
        (
            "cluade",
            {},
            "No agent is called 'cluade'; did you mean 'claude' or 'claude_cli'? If it is a model",
        ),
    ],
)
def test_every_mistake_is_one_sentence(mine: str, word: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        made(word, **settings)

    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_does_not_run_says_where(mine: str, tmp_path: Path) -> None:
    (tmp_path / "slip.py").write_text("import os\nos.no_such_thing\n")

    with pytest.raises(ConfigError, match=r"slip.py failed: AttributeError: .*slip.py:2"):
        made("slip.py:Agent")


def echo_task() -> Environment:
    env = Environment("echo_task")

    @env.template()
    async def say(word: str):  # type: ignore[no-untyped-def]
        answer = yield f"Say {word}."
        yield float(answer == word)

    say("yes")
    return env


def test_in_python_an_agent_is_a_function_an_object_or_a_name() -> None:
    async def parrot(desk: Desk) -> str:
        return str(desk.messages[-1]["content"]).removeprefix("Say ").rstrip(".")

    class Asking:
        async def __call__(self, desk: Desk) -> str:
            return (await desk.ask()).text

    async def means() -> list[float | None]:
        env, model = echo_task(), Scripted(["yes"])
        agents: list[Any] = [parrot, Asking(), "tool_loop", "claude", None]
        return [(await evaluate(env, model, agent=agent)).summary.reward.mean for agent in agents]

    assert asyncio.run(means()) == [1.0] * 5


def test_what_an_agent_raises_is_its_own_fault_and_nobody_elses() -> None:
    env = echo_task()

    async def clumsy(desk: Desk) -> str:
        await desk.ask()
        return str(desk.messages[0]["answer"])

    async def mute(desk: Desk) -> Any:
        await desk.ask()

    async def played() -> list[Any]:
        return [next(iter(await evaluate(env, Scripted(["yes"]), agent=each))) for each in (clumsy, mute)]

    first, second = asyncio.run(played())
    assert (first.outcome, second.outcome) == ("agent_error", "agent_error")
    assert first.failure.message == "clumsy raised KeyError: 'answer'"
    assert second.failure.message == "mute returned NoneType; an answer is text"
    assert first.trace.completion[-1]["content"] == "yes", "what was said before is kept"


def test_without_a_model_the_agents_own_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    result = asyncio.run(evaluate(echo_task(), agent=create_agent("scripted")))

    assert result.run.model == "scripted"


def test_an_environment_that_owns_its_turns_refuses_an_agent() -> None:
    with pytest.raises(ConfigError, match="echo owns its turns; leave out 'tool_loop'"):
        asyncio.run(evaluate("echo", Scripted(), agent=ToolLoop()))


def test_something_that_is_no_agent_is_refused() -> None:
    with pytest.raises(ConfigError, match="is a plain function, not an agent"):
        asyncio.run(evaluate(echo_task(), Scripted(), agent=print))  # type: ignore[arg-type]
    with pytest.raises(
        UnknownNameError, match="'gpt-9' is not an agent, and the model is already 'scripted'"
    ):
        asyncio.run(evaluate(echo_task(), "scripted", agent="gpt-9"))
