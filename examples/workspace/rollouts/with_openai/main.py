"""An SDK: the client of `openai`, pointed to the address and the key of the attempt."""

from __future__ import annotations

from typing import Any

from openai import AsyncOpenAI

from proctor import AgentWorkflow, AgentWorkflowContext, Grader, GraderContext


class Ask(AgentWorkflow[Any]):
    async def run(self, ctx: AgentWorkflowContext[Any]) -> list[dict[str, Any]]:
        async with AsyncOpenAI(base_url=ctx.chat_completions_url, api_key=ctx.api_key) as client:
            answer = await client.chat.completions.create(model=ctx.model, messages=ctx.prompt)
        return [*ctx.prompt, {"role": "assistant", "content": answer.choices[0].message.content}]


class NamesTheCity(Grader[Any]):
    async def grade(self, ctx: GraderContext[Any]) -> None:
        if ctx.label == "?":
            ctx.skip("nobody agrees on this capital")
        ctx.set_reward(float(ctx.label.lower() in ctx.sample.text.lower()))
