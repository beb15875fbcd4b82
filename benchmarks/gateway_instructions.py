"""Instructions that a chat call takes in the server's gateway, beside a bare proxy, under valgrind.

Only the calls are counted, after some that warm the server up. The server is some fifty times slower than
without valgrind, so what it does once a second weighs more here than it does in truth.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.children import HERE, mock_endpoint
from benchmarks.gateway import AT_ONCE, GRANT_USD, ask, log_in, send, server_words, serving
from proctor.server.people.first_login import ADMIN

CALLS, WARM_UP = 1_024, 128
LATENCY_MS = 20
COUNTED = re.compile(r"Collected : (\d+)")


def measured(cwd: Path) -> Iterator[tuple[str, str, str]]:
    subject = f"instructions per chat call of the inference gateway, c={AT_ONCE}, metered and booked"
    if shutil.which("valgrind") is None:
        yield subject, "not measured: valgrind is not installed", "≤ 1.3 ×"
        return
    with mock_endpoint(cwd, latency_ms=LATENCY_MS) as provider:
        floor = count_calls(cwd, (HERE / "bare_proxy.py", provider), is_server=False)
        words = server_words(cwd, provider)
        for limit, grant in (("an account without a limit", 0), ("with a limit, reserved", GRANT_USD)):
            shutil.rmtree(cwd / "data", ignore_errors=True)
            ours = count_calls(cwd, words, grant_usd=grant)
            yield (
                f"{subject}, {limit}",
                f"{ours / floor:.2f} × a bare proxy ({ours:,.0f}; {floor:,.0f})",
                "≤ 1.3 ×",
            )


def count_calls(
    cwd: Path, words: Sequence[str | Path], *, is_server: bool = True, grant_usd: float = 0
) -> float:
    """Instructions per call of a program that listens on the port that is its last word."""
    log = cwd / "valgrind.log"
    tool = ("--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null")
    with serving(cwd, *words, under=("valgrind", *tool, f"--log-file={log}")) as (pid, url):
        token = log_in(url, cwd) if is_server else "none"
        if grant_usd:
            send(url, "grants", token, {"owner": ADMIN, "amount_usd": grant_usd})
        asyncio.run(ask(url, token, WARM_UP))
        switch_counting(pid, "on")
        asyncio.run(ask(url, token, CALLS))
        switch_counting(pid, "off")
    counted = COUNTED.search(log.read_text())
    if counted is None:
        raise RuntimeError(f"valgrind counted nothing:\n{log.read_text()}")
    return int(counted[1]) / CALLS


def switch_counting(pid: int, state: str) -> None:
    subprocess.run(["callgrind_control", f"--instr={state}", str(pid)], check=True, stdout=subprocess.DEVNULL)
