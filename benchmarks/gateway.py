"""What the inference gateway costs beside a bare reverse proxy of the same stack, in one run.

The gateway knows its callers, reads what was used, and books every call in its database before the answer
leaves; the proxy does nothing of the kind.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from benchmarks.children import HERE, environment, mock_endpoint

CALLS = 3_000
AT_ONCE = 64
PAIRS = 7
UP_SECONDS = 600.0
TICKS = os.sysconf("SC_CLK_TCK")
REGISTRY = """
[[endpoint]]
endpoint_id = "mock"
model = "mock"
url = "{url}"
price = {{ input = 1.0, output = 5.0 }}
"""
BODY = msgspec.json.encode(
    {"model": "mock", "messages": [{"role": "user", "content": "What is 2 + 2? " * 20}], "temperature": 0.5}
)


def measured(cwd: Path) -> Iterator[tuple[str, str, str]]:
    with ExitStack() as stack:
        provider = stack.enter_context(mock_endpoint(cwd, latency_ms=20))
        bare = stack.enter_context(serving(cwd, HERE / "bare_proxy.py", provider))
        gateway = stack.enter_context(serving(cwd, *server_words(cwd, provider)))
        token = log_in(gateway[1], cwd)
        for each in (bare, gateway):
            cost_of_a_call(each, token)
        pairs = [(cost_of_a_call(gateway, token), cost_of_a_call(bare, token)) for _ in range(PAIRS)]
    ours, floor = (statistics.median(each) for each in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    yield (
        f"inference gateway: CPU per chat call, c={AT_ONCE}, metered and booked",
        f"{ratio:.2f} × a bare proxy ({ours:.3f} ms; {floor:.3f} ms)",
        "≤ 1.5 ×",
    )


def server_words(cwd: Path, provider: str) -> Sequence[str | Path]:
    """A server in front of the provider, up to its port."""
    registry = cwd / "endpoints.toml"
    registry.write_text(REGISTRY.format(url=provider))
    alone = ("--runs-at-once", "0", "--no-local-model")
    return "-m", "proctor", "server", "--data", cwd / "data", "--endpoints", registry, *alone, "--port"


def log_in(url: str, cwd: Path) -> str:
    """A token that the first login makes."""
    first = (cwd / "data" / "admin-token").read_text().strip()
    secret: str = send(url, "tokens", first, {"scopes": ["inference", "admin"]})["secret"]
    return secret


def send(url: str, path: str, token: str, body: object) -> Any:
    """The answer to a request to the server's API."""
    content = msgspec.json.encode(body)
    request = urllib.request.Request(f"{url.removesuffix('/v1')}/api/v1/{path}", content, method="POST")
    request.add_header("authorization", f"Bearer {token}")
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request) as answer:
        return msgspec.json.decode(answer.read())


Served = tuple[int, str]
"""The process and its address."""


@contextmanager
def serving(cwd: Path, *words: str | Path, under: Sequence[str] = ()) -> Iterator[Served]:
    """A Python program that listens on the port that is its last word, possibly under another program."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [*under, sys.executable, *map(str, words), str(port)]
    child = subprocess.Popen(command, cwd=cwd, env=environment(cwd), stdout=subprocess.DEVNULL)
    try:
        wait_until_up(port)
        yield child.pid, f"http://127.0.0.1:{port}/v1"
    finally:
        child.terminate()
        child.wait()


def wait_until_up(port: int) -> None:
    until = time.monotonic() + UP_SECONDS
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=UP_SECONDS).close()
            return
        except urllib.error.HTTPError:
            return  # it answers
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"nobody answers on port {port}")


def cost_of_a_call(served: Served, token: str) -> float:
    """CPU milliseconds of the server's process for one call of many."""
    pid, url = served
    before = cpu_seconds(pid)
    asyncio.run(ask(url, token, CALLS))
    return (cpu_seconds(pid) - before) / CALLS * 1000


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def ask(url: str, token: str, calls: int) -> None:
    numbers = iter(range(calls))
    headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def worker() -> None:
            for _ in numbers:
                async with session.post(f"{url}/chat/completions", data=BODY) as response:
                    content = await response.read()
                    if response.status != 200:
                        raise RuntimeError(content.decode())

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
