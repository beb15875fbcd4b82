"""Evaluate an environment with verifiers itself; prints one line of JSON per rollout. Runs in its own Python.

python original.py FILE BASE_URL ROLLOUTS_PER_EXAMPLE ARGUMENTS [AT_ONCE]
"""

import asyncio
import importlib.util
import json
import os
import resource
import sys

import verifiers as vf


def load(file, arguments):
    spec = importlib.util.spec_from_file_location("environment_under_test", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load_environment(**arguments)


async def evaluate(env, url, rollouts, at_once):
    os.environ["UNUSED_KEY"] = "none"
    client = vf.ClientConfig(api_base_url=url, api_key_var="UNUSED_KEY")
    return await env.evaluate(
        client, "m", rollouts_per_example=rollouts, max_concurrent=at_once, on_progress=lambda *_: None
    )


def row(output):
    messages = [each if isinstance(each, dict) else each.model_dump() for each in output["completion"]]
    return {
        "example_id": output["example_id"],
        "completion": [[each["role"], each.get("content") or ""] for each in messages],
        "reward": output["reward"],
        "metrics": output["metrics"],
        "stop_condition": output.get("stop_condition"),
    }


def main(file, url, rollouts, arguments, at_once="1"):
    env = load(file, json.loads(arguments))
    before = resource.getrusage(resource.RUSAGE_SELF)
    outputs = asyncio.run(evaluate(env, url, int(rollouts), int(at_once)))["outputs"]
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    sys.stdout.write(json.dumps({"rows": [row(each) for each in outputs], "cpu_seconds": cpu}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
