"""Load and play a v1 taskset of verifiers. Runs in that taskset's own Python; knows nothing of Proctor.

The framework plays and scores in one go: its harness is a program on this machine, and asks the model at a
URL and with a key that are valid for the rollout.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Mapping
from typing import Any

import verifiers
from verifiers.v1.clients import EvalClientConfig, ModelContext
from verifiers.v1.configs.select import SelectConfig
from verifiers.v1.env import RunSlot
from verifiers.v1.utils.loaders import load_environment, resolve_env_config

from .importing import import_environment
from .placement import SEAT, NotPlayableError, complete_config, require_place
from .serving import Serving

MESSAGE_FIELDS = ("role", "content", "reasoning_content", "tool_call_id")
CALL_FIELDS = ("id", "name", "arguments")
SHOWN_ELSEWHERE = frozenset(("prompt", "system_prompt", "answer", "idx"))


def load(params: dict[str, Any], host: Any) -> PlayedTaskset:  # noqa: ARG001
    """Import the taskset's module and make its environment, as verifiers does it."""
    if params.get("folder") is not None:  # for its tool servers, which are processes of their own
        os.environ["PYTHONPATH"] = params["folder"]
    module = import_environment(params)
    sys.modules.setdefault(module.__name__.lower(), module)  # the framework imports it by that name
    served = PlayedTaskset(module.__name__, params["arguments"])
    if params.get("settings"):
        served.configure(params["settings"])
    return served


class PlayedTaskset:
    """One taskset, and the traces of its rollouts until they are forgotten."""

    def __init__(self, taskset_id: str, arguments: Mapping[str, Any]) -> None:
        given = dict(arguments)
        select = SelectConfig.model_validate(given.pop("select", {}))
        self.config = complete_config(taskset_id, given)
        env = self.make_env()
        chosen = env.taskset.select(select)
        if not chosen.bounded:
            raise NotPlayableError('its tasks never end; say how many: -a \'{"select": {"limit": 100}}\'')
        self.tasks_by_id = {task.data.idx: task for task in chosen}
        require_place(
            env.config,
            env.taskset.task_type(),
            self.tasks_by_id.values(),
            is_chosen="runtime" in given.get(SEAT, {}),
        )
        self.details = {
            "class": type(env.taskset).__qualname__,
            "harness": env.config.agent_harnesses()[SEAT].id,
            "runtime": env.config.agent.runtime.type,
        }
        self.traces: dict[int, Any] = {}
        self.serving: Serving | None = None

    def make_env(self) -> Any:
        return load_environment(resolve_env_config(copy.deepcopy(self.config)))

    def describe(self) -> dict[str, Any]:
        return {
            "size": len(self.tasks_by_id),
            "version": verifiers.__version__,
            "wants_endpoint": True,
            "rescores": False,
            "details": self.details,
        }

    # Over the control socket

    def tasks(self, start: int, stop: int) -> list[dict[str, Any]]:
        return [describe_task(task.data) for task in list(self.tasks_by_id.values())[start:stop]]

    def configure(self, settings: dict[str, Any]) -> None:
        """Settings of the seat, such as `max_turns`; the framework refuses those that it does not know."""
        self.config[SEAT].update(settings)
        self.make_env()

    def set_concurrency(self, concurrency: int) -> None:
        """The framework has no limit of its own."""

    # Over the calls socket

    async def play(self, session: int, task: Any, model: str, endpoint: dict[str, str]) -> dict[str, Any]:
        key_name = f"ROLLOUT_{session}_API_KEY"  # the framework hides such names from harnesses
        os.environ[key_name] = endpoint["key"]
        client = EvalClientConfig(base_url=endpoint["url"], api_key_var=key_name)
        try:
            async with self.serve() as env:
                slot = RunSlot(self.tasks_by_id[task])
                episode = await env.run_slot(slot, ModelContext(model=model, client=client))
        finally:
            del os.environ[key_name]
        if not episode.traces:
            return {"error": describe_failure(episode.last_error, "no agent was run")}
        trace = self.traces[session] = episode.traces[-1]
        return describe_trace(trace)

    def serve(self) -> Serving:
        if self.serving is None or self.serving.is_worn:
            if self.serving is not None:
                self.serving.retire()
            self.serving = Serving(self.make_env())
        return self.serving

    async def score(self, session: int) -> dict[str, Any]:
        trace = self.traces[session]
        if not trace.ok:
            return {"error": describe_failure(trace.last_error, trace.stop_condition)}
        if missing := [name for name, reward in trace.rewards.items() if reward is None]:
            return {"error": {"type": "Unscored", "message": f"{', '.join(missing)} gave no value in time"}}
        metrics = {name: reward.score for name, reward in trace.rewards.items()}
        metrics |= {name: value for name, value in trace.metrics.items() if value is not None}
        return {"reward": trace.reward, "metrics": metrics}

    async def forget(self, session: int) -> None:
        self.traces.pop(session, None)

    async def close(self) -> None:
        if self.serving is not None:
            await self.serving.close()


def describe_task(data: Any) -> dict[str, Any]:
    prompt = [{"role": "user", "content": data.prompt}] if isinstance(data.prompt, str) else data.prompt or []
    system = [{"role": "system", "content": data.system_prompt}] if data.system_prompt else []
    answer = getattr(data, "answer", None)
    # Fields that the framework has for every task are its own when they say anything.
    own = data.model_dump(mode="json", exclude_none=True, exclude_defaults=True, exclude=SHOWN_ELSEWHERE)
    return {
        "id": data.idx,
        "prompt": [*system, *map(plain_message, prompt)],
        "answer": "" if answer is None else str(answer),
        "info": own,
    }


def describe_trace(trace: Any) -> dict[str, Any]:
    """The last branch of the conversation, from the first answer on; an error unless only scoring failed."""
    nodes = trace.branches[-1].nodes if trace.branches else []
    first = next((number for number, node in enumerate(nodes) if node.sampled), len(nodes))
    has_failed = not trace.ok and not trace.timing.scoring.start
    return {
        "prompt": [plain_message(node.message) for node in nodes[:first]],
        "completion": [plain_message(node.message) for node in nodes[first:]],
        "stop_condition": trace.stop_condition,
        "truncated": trace.is_truncated,
        "error": describe_failure(trace.last_error, trace.stop_condition) if has_failed else None,
    }


def describe_failure(error: Any, otherwise: str | None) -> dict[str, Any]:
    """An error that the framework kept in a trace; one of the model is not the environment's."""
    if error is None:
        return {"type": "Stopped", "message": otherwise or "ended without a reason"}
    return {"type": error.type, "message": error.message, "is_model": error.type == "ProviderError"}


def plain_message(message: Any) -> dict[str, Any]:
    """A message as plain data, without fields that are not set."""
    content = message if isinstance(message, dict) else message.model_dump(mode="json", exclude_none=True)
    kept = {name: content[name] for name in MESSAGE_FIELDS if content.get(name) is not None}
    if calls := content.get("tool_calls"):
        kept["tool_calls"] = [{name: call[name] for name in CALL_FIELDS} for call in calls]
    return kept
