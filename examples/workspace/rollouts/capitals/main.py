"""Ask for a capital, check the answer, and ask once more if it is too long.

proctor eval run examples/workspace/configs/eval/capitals.toml -m local
"""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from proctor import AgentWorkflow, AgentWorkflowContext, AgentWorkflowOutput, Grader, GraderContext

LONGEST_WORDS = 3


class AskTwice(AgentWorkflow[Any]):
    """A plain function: it may block, and blocks only its own row."""

    def run(self, ctx: AgentWorkflowContext[Any]) -> AgentWorkflowOutput:
        messages = list(ctx.prompt)
        for attempt in (1, 2):
            answer = ask(ctx, messages)
            messages.append({"role": "assistant", "content": answer})
            if len(answer.split()) <= LONGEST_WORDS or attempt == 2:
                break
            messages.append({"role": "user", "content": "Only the name of the city, please."})
        (ctx.artifacts_dir / "conversation.json").write_text(json.dumps(messages, indent=2))
        return AgentWorkflowOutput(messages=messages, metrics={"questions": attempt})


class NamesTheCity(Grader[Any]):
    """Half the reward for a right answer that says more than the name."""

    async def grade(self, ctx: GraderContext[Any]) -> None:
        if ctx.label == "?":
            ctx.skip("nobody agrees on this capital")
        right = ctx.label.lower() in ctx.sample.text.lower()
        short = len(ctx.sample.text.split()) <= LONGEST_WORDS
        ctx.set_reward((1.0 if short else 0.5) if right else 0.0)


def ask(ctx: AgentWorkflowContext[Any], messages: list[dict[str, Any]]) -> str:
    """One call of the chat completions API; an SDK does the same with this URL and key."""
    body = json.dumps({"model": ctx.model, "messages": messages, "max_tokens": 30}).encode()
    headers = {"authorization": f"Bearer {ctx.api_key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{ctx.chat_completions_url}/chat/completions", body, headers)
    with urllib.request.urlopen(request) as response:
        answer: str = json.load(response)["choices"][0]["message"]["content"]
        return answer
