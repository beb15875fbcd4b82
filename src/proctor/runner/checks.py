"""Try out what was pushed: whether a version installs, loads and yields tasks.

    while await check_one(server, checker): …

All of it happens behind the walls that a run gets, without any network once it is installed. Knows nothing of
how the server queues checks.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from proctor.api.common import IDEMPOTENCY_HEADER
from proctor.api.hub import CheckOrder, CheckResult
from proctor.api.runs import ClaimRequest
from proctor.client.connection import ServerConnection, ServerError, decode_answer
from proctor.errors import ProctorError
from proctor.isolation.limits import RunLimits
from proctor.isolation.untrusted_tree import UntrustedFileError, discard_tree, read_file
from proctor.runner.excerpt import Excerpt
from proctor.runner.inspection import COUNTED_TASKS, SIZES, EnvironmentInspection
from proctor.runner.launch import ProcessExit, ProcessSpec, launch
from proctor.runner.venvs import Venv, Venvs
from proctor.runner.wheels import fetch_wheel
from proctor.support.processes import describe_exit, summarize_output

LOOK_SECONDS = 60.0
READ_SECONDS = 10.0
LONGEST_LOG = 200_000
LONGEST_MESSAGE = 32_000
LONGEST_INSPECTION = 1_000_000
INSPECTION_FILE = "looked.json"


class Checker(msgspec.Struct, frozen=True, kw_only=True):
    """What a host checks versions with."""

    host: str
    """Its name, for people to read."""
    venvs: Venvs
    wheels: Path
    """Where wheels are kept."""
    hidden: tuple[Path, ...] = ()
    limits: RunLimits = RunLimits()
    seconds: float = LOOK_SECONDS
    """How long loading and counting may take."""
    allow_no_sandbox: bool = False


async def check_one(server: ServerConnection, checker: Checker) -> bool:
    """Whether there was something to check."""
    claimed = await post_idempotent(server, "/hosts/checks/claims", ClaimRequest(checker.host))
    if not claimed:
        return False
    order = decode_answer(claimed, CheckOrder)
    result = await check(server, checker, order)
    await post_idempotent(server, f"/hosts/checks/{order.version_id}", result)
    return True


async def check(server: ServerConnection, checker: Checker, order: CheckOrder) -> CheckResult:
    began = time.monotonic()
    log = Excerpt()
    try:
        wheel = await fetch_wheel(server, order.wheel_sha256, checker.wheels)
        venv = await checker.venvs.ready(wheel, order.wheel_name, None, log.add)
        looked = await inspect_environment(checker, order, venv, log.add)
        lock: str | None = venv.lock
    except ServerError:
        raise
    except ProctorError as error:
        looked, lock = EnvironmentInspection(problem=str(error)), None
    facts: dict[str, Any] = {name: getattr(looked, name) for name in ("mean_prompt_characters", *SIZES)}
    return CheckResult(
        passed=not looked.problem,
        message=(looked.problem or describe_inspection(looked))[:LONGEST_MESSAGE],
        needs_secret=looked.needs_secret,
        tasks=looked.tasks,
        seconds=time.monotonic() - began,
        log="\n".join(log.lines)[-LONGEST_LOG:],
        lock=lock,
        facts={name: value for name, value in facts.items() if value is not None},
    )


async def inspect_environment(
    checker: Checker, order: CheckOrder, venv: Venv, say: Callable[[str], None]
) -> EnvironmentInspection:
    """What the environment shows of itself, in a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-check-"))
    spec = ProcessSpec(
        run_id=f"check-{order.version_id}",
        words=(
            *(str(venv.python), "-P", "-m", "proctor.runner.inspection"),
            *(order.module, INSPECTION_FILE, *order.secrets),
        ),
        folder=folder,
        variables={**order.variables, **venv.variables},
        paths=venv.paths,
        hidden=checker.hidden,
        limits=checker.limits,
    )
    try:
        running = await launch(spec, allow_no_sandbox=checker.allow_no_sandbox)
        try:
            async with asyncio.timeout(checker.seconds):
                async for line in running.output:
                    say(line)
                ended = await running.wait()
        except TimeoutError:
            return EnvironmentInspection(
                problem=f"Loading it and counting its tasks took longer than {checker.seconds:.0f} seconds; "
                "let it load less, or read its tasks one by one."
            )
        finally:
            await running.end(0)
        return await read_inspection(folder) or EnvironmentInspection(problem=describe_death(ended))
    finally:
        await asyncio.to_thread(discard_tree, folder)


async def read_inspection(folder: Path) -> EnvironmentInspection | None:
    """What the process wrote down before it ended; None where it is not what it should be."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            content = await asyncio.to_thread(read_file, folder, INSPECTION_FILE, LONGEST_INSPECTION)
        return msgspec.json.decode(content, type=EnvironmentInspection)
    except (FileNotFoundError, UntrustedFileError, TimeoutError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def describe_death(ended: ProcessExit) -> str:
    if ended.reason:
        return f"Loading it went beyond the limit of {ended.reason}; let it load less."
    code = ended.code if ended.signal is None else -ended.signal
    said = summarize_output(ended.last_words)
    return f"The process that loaded it {describe_exit(code)}{f': {said}' if said else ''}"


def describe_inspection(looked: EnvironmentInspection) -> str:
    if looked.has_more_tasks:
        return f"It installs, loads and yields more than {COUNTED_TASKS:,} tasks."
    return f"It installs, loads and yields {looked.tasks:,} task{'' if looked.tasks == 1 else 's'}."


async def post_idempotent(server: ServerConnection, path: str, body: Any) -> bytes:
    """The answer as it came; empty where the server has nothing to say."""
    headers = {IDEMPOTENCY_HEADER: secrets.token_hex(16)}
    return await server.ask("POST", path, body=msgspec.json.encode(body), headers=headers)
