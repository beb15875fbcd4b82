"""What a call costs that the reply cache answers, with nothing around it.

    python cached_calls.py FOLDER [calls]

Fills a cache in the folder with the replies of the mock endpoint, then asks for each again, as one rollout
per call. Prints CPU milliseconds per call, start-up and filling excluded.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from proctor.config.endpoints import Endpoint
from proctor.endpoints.reply_cache import ReplyCache
from proctor.models.scripted import Scripted
from proctor.trace import ModelCall, Reply, Usage

REPLY = Reply({"role": "assistant", "content": "The answer is 4"}, "stop", Usage(12, 3), "mock", "c1")


def main(folder: Path, count: int) -> None:
    endpoint = Endpoint(model="mock", client_type="openai_chat_completions", url="http://127.0.0.1:1/v1")
    model = Scripted()
    calls = [build_call(number) for number in range(count)]
    filled = ReplyCache(folder, endpoint)
    for number, call in enumerate(calls):
        rollout = filled.for_rollout((number, 0))
        if rollout.find(call, model) is None:
            rollout.keep(call, REPLY)
    filled.close()
    cache = ReplyCache(folder, endpoint)
    before = time.process_time()
    found = sum(
        cache.for_rollout((number, 0)).find(call, model) is not None for number, call in enumerate(calls)
    )
    spent = time.process_time() - before
    cache.close()
    if found < count:
        raise RuntimeError(f"the cache answered {found:,} of {count:,} calls")
    print(f"{spent / count * 1000:.4f} cpu-ms per call")


def build_call(number: int) -> ModelCall:
    question = {"role": "user", "content": f"What is 2+2? (#{number})"}
    return ModelCall("agent", "mock", [question], {}, 0.0, (), 0.0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int([*sys.argv[2:], "20000"][0]))
