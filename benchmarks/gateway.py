"""What the inference gateway costs beside a bare reverse proxy of the same stack, in one run.

The gateway knows its callers, reads what was used, and books every call in its database before the answer
leaves; the proxy does nothing of the kind. Many short rounds alternate between them, so that the load of the
machine meets all of them alike.
"""

from __future__ import annotations

import asyncio
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
from proctor.server.people.first_login import ADMIN

CALLS = 500
AT_ONCE = 64
ROUNDS = 30
UP_SECONDS = 600.0
GRANT_USD = 1_000_000
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
        bare = stack.enter_context(serving(cwd, HERE / "bare_proxy.py", provider)), "none"
        servers = []
        for name, grant_usd in (("an account without a limit", 0), ("with a limit, reserved", GRANT_USD)):
            folder = cwd / name.replace(" ", "-")
            folder.mkdir()
            served = stack.enter_context(serving(folder, *server_words(folder, provider)))
            token = log_in(served[1], folder)
            if grant_usd:
                send(served[1], "grants", token, {"owner": ADMIN, "amount_usd": grant_usd})
            servers.append((name, (served, token)))
        each = [bare, *(server for _, server in servers)]
        for one in each:
            cost_of_a_call(*one)
        rounds = [[cost_of_a_call(*one) for one in each] for _ in range(ROUNDS)]
    floor, *columns = zip(*rounds, strict=True)
    for (name, _), ours in zip(servers, columns, strict=True):
        ratio = statistics.median(one / other for one, other in zip(ours, floor, strict=True))
        yield (
            f"inference gateway: CPU per chat call, c={AT_ONCE}, metered and booked, {name}",
            f"{ratio:.2f} × a bare proxy (at least {min(ours):.3f} ms; {min(floor):.3f} ms)",
            "≤ 1.3 ×",
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
    """Of all threads of a process that still run; its clock ticks are too coarse for a short round."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


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
