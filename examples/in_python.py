"""Evaluate from Python: an environment, a model, a result.

python examples/in_python.py
"""

from __future__ import annotations

import asyncio

from proctor import EchoEnvironment, Scripted, evaluate
from proctor.errors import OverloadedError


async def main() -> None:
    environment = EchoEnvironment("say one", "say two", "say three")
    model = Scripted({"say one": "say one", "say two": "no", "say three": OverloadedError("503")})

    result = await evaluate(environment, model)

    for rollout in result:
        print(rollout.task.answer, "→", rollout.outcome, rollout.score and rollout.score.reward)
    summary = result.summary
    print(f"reward {summary.reward.mean}, coverage {summary.coverage:.0%}, bounds {summary.bounds}")


if __name__ == "__main__":
    asyncio.run(main())
