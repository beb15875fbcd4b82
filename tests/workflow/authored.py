from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from proctor import AgentWorkflowContext
from proctor.task import Task


def ask_model(ctx: AgentWorkflowContext[Any], messages: list[dict[str, Any]] | None = None) -> str:
    """Calls the model as any program would, and blocks meanwhile."""
    body = {"model": ctx.model, "messages": messages or ctx.prompt}
    request = urllib.request.Request(
        f"{ctx.chat_completions_url}/chat/completions",
        json.dumps(body).encode(),
        {"authorization": f"Bearer {ctx.api_key}", "content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            answer: str = json.load(response)["choices"][0]["message"]["content"]
            return answer
    except urllib.error.HTTPError as error:
        with error:
            raise RuntimeError(f"the model answered {error.code}") from None


def make_tasks(*labels: str) -> list[Task]:
    return [
        Task(id=index, prompt=({"role": "user", "content": f"say {label}"},), answer=label)
        for index, label in enumerate(labels)
    ]
