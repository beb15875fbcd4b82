"""One rule for which model and which endpoint: in Python and on the server, after a login."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor import Environment, create_agent, evaluate
from proctor.client.contexts import Context, Contexts, current_context, write_contexts
from proctor.runtimes.hosted import HostedRuntime
from tests.server.runs import making
from tests.server.serving import Api, Served, serving, settings_in

MODELS = """
[[endpoint]]
endpoint_id = "parrot"
model = "parrot"
type = "scripted"

[[endpoint]]
endpoint_id = "claude-sonnet-4-5"
model = "claude-sonnet-4-5"
type = "scripted"
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server with two models, and a login of ada's on this machine."""
    (tmp_path / "endpoints.toml").write_text(MODELS)
    with serving(settings_in(tmp_path, endpoints=tmp_path / "endpoints.toml")) as server:
        login = Context(url=server.url, token=server.user("ada").token)
        write_contexts(os.environ, Contexts(current="lab", contexts={"lab": login}))
        yield server


def as_ada(served: Served) -> Api:
    context = current_context(os.environ)
    assert context is not None
    return Api(served.url, context.token)


def greetings() -> Environment:
    env = Environment("greetings")

    @env.template()
    async def greet():  # type: ignore[no-untyped-def]
        answer = yield "Say hello."
        yield 1.0 if answer == "Say hello." else 0.0

    greet()
    return env


@pytest.mark.parametrize(("agent", "model"), [("claude", "claude-sonnet-4-5"), (None, "parrot")])
def test_a_login_counts_in_python_as_on_the_command_line(
    served: Served, agent: str | None, model: str
) -> None:
    made = None if agent is None else create_agent(agent)

    result = asyncio.run(evaluate(greetings(), agent=made))

    assert result.summary.reward.mean == 1.0
    assert result.run.model == model
    [use] = served.root.get("/usage?owner=ada")["items"]
    assert (use["model"], use["requests"]) == (model, 1)


def test_a_hosted_runtime_uses_the_login(served: Served) -> None:
    runtime = HostedRuntime()

    async def check() -> None:
        await runtime.check()
        await runtime.close()

    assert runtime.url == served.url
    asyncio.run(check())


@pytest.mark.parametrize(
    ("settings", "model", "agent"),
    [
        ({"agent": "claude"}, "claude-sonnet-4-5", "claude"),
        ({"agent": "claude-sonnet-4-5"}, "claude-sonnet-4-5", "tool_loop"),
        ({"agent": "ours_from_the_package"}, "parrot", "ours_from_the_package"),
        ({}, "parrot", None),
    ],
)
def test_a_hosted_run_evaluates_the_model_of_its_agent(
    served: Served, settings: dict[str, str], model: str, agent: str | None
) -> None:
    served.platform.database.write_now(making.environment)
    run = as_ada(served).post("/runs", {"environment": "ada/sums", "settings": settings})

    assert run["model"] == model
    assert run["settings"].get("agent") == agent


def test_a_hosted_run_of_an_agent_whose_model_the_server_lacks_is_refused(served: Served) -> None:
    served.platform.database.write_now(making.environment)

    answer = as_ada(served)("POST", "/runs", {"environment": "ada/sums", "settings": {"agent": "gemini"}})

    assert answer.code == "model_not_found"
    assert "This server has no model 'gemini-2.5-flash'" in answer.body["message"]
