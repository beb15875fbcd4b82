"""Replies that are kept: what is asked again, what is not, and what a broken cache does to a run."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor import Environment, JudgeRubric, Rubric, Scripted, SingleTurnEnv, Step, evaluate
from proctor.contracts import EnvironmentProtocol
from proctor.endpoints import reply_cache
from proctor.errors import ConfigError
from proctor.evaluation.execute import Result
from proctor.trace import Message, text_of

if TYPE_CHECKING:
    from tests.conftest import Provider, Ran

ROWS = [{"question": f"say {number}", "answer": f"say {number}"} for number in range(2)]


def length(completion: list[Message]) -> float:
    return float(len(text_of(completion[-1])))


def env() -> SingleTurnEnv:
    return SingleTurnEnv(ROWS, rubric=Rubric(length))


def play(
    folder: Path, script: Any = (), environment: EnvironmentProtocol | None = None, **settings: Any
) -> tuple[Result, int]:
    """The result, and how often the model was asked."""
    model = Scripted(script, name="gpt-4.1")
    given = {"cache": str(folder), "rollouts_per_example": 2, "max_concurrent": 1, **settings}
    result = asyncio.run(evaluate(environment or env(), model, **given))
    return result, len(model.requests)


def texts(result: Result) -> list[str]:
    return [text_of(rollout.trace.completion[-1]) for rollout in result]


def test_a_replay_asks_nothing_costs_nothing_and_is_the_same_run(tmp_path: Path) -> None:
    first, asked = play(tmp_path, ["a", "bb", "ccc", "dddd"])
    again, asked_again = play(tmp_path, ["other"])

    assert (asked, asked_again) == (4, 0)
    assert texts(again) == texts(first) == ["a", "bb", "ccc", "dddd"]  # rollouts of a task stay two samples
    assert again.summary.reward == first.summary.reward
    assert again.summary.cost_usd == pytest.approx(0.0, abs=1e-12)
    assert again.summary.saved_usd == pytest.approx(first.summary.cost_usd)
    assert again.summary.usage == first.summary.usage
    assert first.summary.saved_usd is None


def test_only_what_is_new_is_asked(tmp_path: Path) -> None:
    play(tmp_path)

    assert play(tmp_path, rollouts_per_example=3)[1] == 2
    assert play(tmp_path, temperature=0.5)[1] == 4
    assert (
        play(tmp_path, environment=SingleTurnEnv([*ROWS, {"question": "new"}], rubric=Rubric(length)))[1] == 2
    )


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    first, _ = play(tmp_path, {"say 1": Step(error="refused")})
    again, asked = play(tmp_path)

    assert (first.summary.scored, again.summary.scored, asked) == (2, 4, 2)


def test_a_question_that_is_asked_twice_in_a_rollout_has_two_replies(tmp_path: Path) -> None:
    async def twice(desk: Any) -> str:
        replies = [await desk.ask(desk.messages) for _ in range(2)]
        return " ".join(reply.text for reply in replies)

    environment = Environment("asking")

    @environment.template()
    async def ask() -> Any:
        answer = yield "Well?"
        yield float(answer == "a b")

    ask()
    rewards = []
    for script in (["a", "b"], ["c"]):
        model = Scripted(script)
        result = asyncio.run(evaluate(environment, model, agent=twice, cache=str(tmp_path)))
        rewards.append((result.summary.reward.mean, len(model.requests)))

    assert rewards == [(1.0, 2), (1.0, 0)]


def test_judges_are_cached_too(tmp_path: Path) -> None:
    asked = []
    for verdict in ("yes", "no"):
        judge = Scripted([verdict], name="judge")
        result, _ = play(tmp_path, environment=SingleTurnEnv(ROWS, rubric=JudgeRubric(judge=judge)))
        asked.append((len(judge.requests), result.summary.reward.mean))

    assert asked == [(4, 1.0), (0, 1.0)]


def test_runs_at_the_same_time_share_a_cache(tmp_path: Path) -> None:
    async def both() -> None:
        runs = (
            evaluate(env(), Scripted(name="gpt-4.1"), cache=str(tmp_path), rollouts_per_example=20)
            for _ in range(3)
        )
        for result in await asyncio.gather(*runs):
            assert result.summary.scored == 40

    asyncio.run(both())

    assert play(tmp_path, rollouts_per_example=20)[1] == 0


def test_a_file_that_is_no_cache_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / reply_cache.FILE).write_text("not a database, and long enough to tell" * 100)

    with pytest.raises(ConfigError, match=r"cannot be used: .*--cache DIR"):
        play(tmp_path)


def test_a_cache_that_breaks_on_the_way_does_not_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    play(tmp_path)
    with sqlite3.connect(tmp_path / reply_cache.FILE) as database:
        database.execute("UPDATE replies SET reply = 'damaged'")

    result, asked = play(tmp_path)

    assert (result.summary.scored, asked) == (4, 4)
    assert "continues without it" in caplog.text


@pytest.mark.slow
def test_a_suite_and_its_workers_use_the_cache(
    proctor: Callable[..., Ran], provider: Callable[..., Provider], tmp_path: Path
) -> None:
    server = provider()
    (tmp_path / "suite.toml").write_text(
        'model = "m"\ncache = "kept"\nnum_examples = 4\nrollouts_per_example = 2\n'
        f'api_base_url = "{server.url}"\napi_key_var = "SECRET"\n[[eval]]\nenv_id = "echo"\nnum_workers = 2\n'
    )
    words = ("eval", "run", "suite.toml", "--json")
    first, again = (proctor(*words, environ={"SECRET": "x"}) for _ in range(2))

    assert first.code == 0, first.stderr
    assert again.code == 0, again.stderr
    assert len(server.requests) == 8
    assert again.summary["reused_replies"]["m"]["calls"] == 8


def test_the_place_may_be_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert reply_cache.locate_cache(True) == reply_cache.locate_cache("default")
    assert reply_cache.locate_cache(True) == tmp_path / "proctor" / "replies"
    assert reply_cache.locate_cache(False) is None
