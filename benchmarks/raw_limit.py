"""The floor: what one chat call and one result line cost with nothing around them.

    python raw_limit.py URL [calls] [concurrency]

Prints CPU milliseconds per call, start-up excluded. Divide an evaluator's CPU per rollout by this figure,
both measured in the same minute.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile

import aiohttp
import msgspec
import uvloop


class Message(msgspec.Struct):
    content: str


class Choice(msgspec.Struct):
    message: Message


class Completion(msgspec.Struct):
    choices: list[Choice]


decode = msgspec.json.Decoder(Completion).decode
encode = msgspec.json.encode


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def main(url: str, calls: int, concurrency: int) -> None:
    numbers = iter(range(calls))
    headers = {"content-type": "application/json", "authorization": "Bearer x"}
    connector = aiohttp.TCPConnector(limit=0)
    with tempfile.TemporaryFile() as out:
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

            async def worker() -> None:
                for number in numbers:
                    question = {"role": "user", "content": f"What is 2+2? (#{number})"}
                    body = encode({"model": "mock", "messages": [question]})
                    async with session.post(f"{url}/chat/completions", data=body) as response:
                        text = decode(await response.read()).choices[0].message.content
                    row = {"task": number, "reward": float("4" in text), "completion": text}
                    out.write(encode(row) + b"\n")

            before = cpu_seconds()
            await asyncio.gather(*(worker() for _ in range(concurrency)))
            print(f"{(cpu_seconds() - before) / calls * 1000:.3f} cpu-ms per call")


if __name__ == "__main__":
    uvloop.install()
    calls, concurrency = [int(word) for word in [*sys.argv[2:], "20000", "128"][:2]]
    asyncio.run(main(sys.argv[1], calls, concurrency))
