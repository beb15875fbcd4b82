"""Evaluate a v1 taskset with verifiers itself; prints one line of JSON. Runs in its own Python.

python original_taskset.py FOLDER TASKSET BASE_URL ROLLOUTS_PER_TASK
"""

import asyncio
import json
import os
import sys

from verifiers.v1.clients import EvalClientConfig, ModelContext
from verifiers.v1.utils.loaders import load_environment, resolve_env_config


async def evaluate(taskset, url, rollouts):
    seat = {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}}
    env = load_environment(resolve_env_config({"taskset": {"id": taskset}, "agent": seat}))
    context = ModelContext(model="m", client=EvalClientConfig(base_url=url, api_key_var="UNUSED_KEY"))
    async with env.serving():
        slots = [slot for task in env.taskset for slot in env.slots(task, rollouts)]
        return [row(await env.run_slot(slot, context)) for slot in slots]


def row(episode):
    (trace,) = episode.traces
    assert trace.ok, trace.errors
    messages = trace.messages
    first = next(number for number, each in enumerate(messages) if each.role == "assistant")
    return {
        "example_id": trace.task.data.idx,
        "completion": [[each.role, each.content or ""] for each in messages[first:]],
        "reward": trace.reward,
        "metrics": {name: each.score for name, each in trace.rewards.items()} | trace.metrics,
        "stop_condition": trace.stop_condition,
    }


def main(folder, taskset, url, rollouts):
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = folder
    rows = asyncio.run(evaluate(taskset, url, int(rollouts)))
    sys.stdout.write(json.dumps({"rows": rows}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
