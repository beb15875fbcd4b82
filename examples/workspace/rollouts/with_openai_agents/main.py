"""A framework: an agent of `openai-agents` with a tool. Nothing is returned; the recorded calls count."""

from __future__ import annotations

from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from proctor import AgentWorkflow, AgentWorkflowContext, Grader, GraderContext

MOST_TURNS = 5

set_tracing_disabled(True)


def look_up(country: str) -> str:
    """Look a country up in the atlas."""
    return {"Japan": "Tokyo, on the island of Honshu"}.get(country, f"{country} is on no page")


class UseTheAtlas(AgentWorkflow[Any]):
    async def run(self, ctx: AgentWorkflowContext[Any]) -> None:
        async with AsyncOpenAI(base_url=ctx.chat_completions_url, api_key=ctx.api_key) as client:
            agent = Agent(
                name="geographer",
                instructions=ctx.prompt[0]["content"],
                tools=[function_tool(look_up)],
                model=OpenAIChatCompletionsModel(model=ctx.model, openai_client=client),
            )
            await Runner.run(agent, ctx.prompt[-1]["content"], max_turns=MOST_TURNS)


class NamesTheCity(Grader[Any]):
    def grade(self, ctx: GraderContext[Any]) -> None:
        if ctx.label == "?":
            ctx.skip("nobody agrees on this capital")
        ctx.set_reward(float(ctx.label.lower() in ctx.sample.text.lower()))
        ctx.set_metric("tool_calls", sum(len(each.get("tool_calls") or []) for each in ctx.sample.messages))
