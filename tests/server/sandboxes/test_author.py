"""What the author of an environment writes, inside of a run and outside of one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from proctor import EnvError, instance, sandbox
from proctor.errors import ConfigError
from proctor.evaluation.evaluate import evaluate
from proctor.models.scripted import Scripted
from tests.server.sandboxes.playing import Run, a_run
from tests.server.serving import Served

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def inside(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """As in the process that plays a run."""
    monkeypatch.setenv("PROCTOR_API_URL", run.url)
    monkeypatch.setenv("PROCTOR_API_KEY", run.token)
    return run


def test_a_program_is_written_run_and_what_it_wrote_is_read(inside: Run) -> None:
    async def play() -> None:
        async with sandbox() as box:
            await box.write("src/a b.py", "print(6 * 7); open('out', 'wb').write(bytes(range(256)))")
            ran = await box.run(["python3", "src/a b.py"], seconds=20)
            assert (ran.code, ran.output) == (0, "42\n")
            assert await box.read("out") == bytes(range(256))
            assert await box.read("nothing") is None
            assert (await box.run("sleep 9", seconds=0.2)).code is None

    asyncio.run(play())
    assert inside.get("/sandboxes")["items"][0]["status"] == "ended"


def test_an_instance_is_asked_by_its_url(inside: Run) -> None:
    async def play() -> str:
        command = ["python3", "-m", "http.server", "8000", "--bind", "127.0.0.1"]
        async with (
            instance(command, port=8000, files={"pear.txt": "juicy"}) as site,
            aiohttp.ClientSession(headers=site.headers) as session,
            session.get(site.url + "pear.txt") as answer,
        ):
            return await answer.text()

    assert asyncio.run(play()) == "juicy"


def test_a_sandbox_is_ended_when_the_rollout_fails_in_it(inside: Run) -> None:
    async def play() -> None:
        async with sandbox():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(play())
    assert inside.get("/sandboxes")["items"][0]["status"] == "ended"


def test_a_run_without_the_permission_fails_with_the_flag_to_give(
    shared: Served, inside: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_API_KEY", a_run(shared).token)

    async def play() -> None:
        async with sandbox():
            pass

    with pytest.raises(EnvError, match="--allow-sandbox-access"):
        asyncio.run(play())


def test_outside_of_a_hosted_run_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_API_URL", raising=False)

    async def play() -> None:
        async with sandbox():
            pass

    with pytest.raises(ConfigError, match="--hosted"):
        asyncio.run(play())


def test_a_path_that_leads_out_never_leaves_here(inside: Run) -> None:
    async def play() -> None:
        async with sandbox() as box:
            await box.write("../exec", b"{}")

    with pytest.raises(EnvError, match="leads out"):
        asyncio.run(play())


def test_the_example_grades_in_a_sandbox(inside: Run) -> None:
    model = Scripted(
        {"reverse": "```python\ndef solve(text):\n    return text[::-1]\n```", "vowels": "I cannot."}
    )
    result = asyncio.run(evaluate(str(EXAMPLES / "hosted" / "programs.py"), model))
    assert [rollout.score.reward if rollout.score else None for rollout in result] == [1.0, 0.0]
