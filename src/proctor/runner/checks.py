"""Check pushed versions: does each install, load and yield tasks?

    while await check_one(server, checker): …

Everything happens in the same sandbox that a run gets, without any network once it is installed. Knows
nothing of how the server queues checks.
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
from proctor.api.hub import CheckAssignment, CheckResult
from proctor.api.runner import ClaimRequest
from proctor.client.connection import ServerConnection, ServerError, decode_answer
from proctor.errors import ProctorError
from proctor.isolation.limits import RunLimits
from proctor.isolation.untrusted_tree import UntrustedFileError, discard_tree, read_file
from proctor.runner.excerpt import Excerpt
from proctor.runner.host_paths import hide_folder
from proctor.runner.inspection import COUNTED_TASKS, SIZES, EnvironmentInspection, take_listed
from proctor.runner.launch import ProcessExit, ProcessSpec, launch
from proctor.runner.venvs import Venv, Venvs
from proctor.runner.wheels import fetch_wheel
from proctor.support.processes import describe_exit, summarize_output

LOOK_SECONDS = 60.0
READ_SECONDS = 10.0
LONGEST_LOG = 200_000
LONGEST_MESSAGE = 32_000
LONGEST_INSPECTION = 8_000_000
INSPECTION_FILE = "looked.json"


class Checker(msgspec.Struct, frozen=True, kw_only=True):
    """What a host checks versions with."""

    host: str
    """The host's name, for people to read."""
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
    assignment = decode_answer(claimed, CheckAssignment)
    result = await check(server, checker, assignment)
    await post_idempotent(server, f"/hosts/checks/{assignment.version_id}", result)
    return True


async def check(server: ServerConnection, checker: Checker, assignment: CheckAssignment) -> CheckResult:
    began = time.monotonic()
    log, data = Excerpt(), checker.wheels.parent
    try:
        wheel = await fetch_wheel(server, assignment.wheel_sha256, checker.wheels)
        venv = await checker.venvs.ready(wheel, assignment.wheel_name, None, log.add)
        inspection = await inspect_environment(checker, assignment, venv, log.add)
        lock: str | None = venv.lock
    except ServerError:
        raise
    except ProctorError as error:
        inspection, lock = EnvironmentInspection(problem=str(error)), None
    facts: dict[str, Any] = {name: getattr(inspection, name) for name in ("mean_prompt_characters", *SIZES)}
    return CheckResult(
        passed=not inspection.problem,
        message=hide_folder(inspection.problem or describe_inspection(inspection), data)[:LONGEST_MESSAGE],
        needs_secret=inspection.needs_secret,
        tasks=inspection.tasks,
        seconds=time.monotonic() - began,
        log=hide_folder("\n".join(log.lines), data)[-LONGEST_LOG:],
        lock=lock,
        facts={name: value for name, value in facts.items() if value is not None},
        task_list=list(take_listed(inspection.task_list)),
        details=inspection.details,
    )


async def inspect_environment(
    checker: Checker, assignment: CheckAssignment, venv: Venv, log_line: Callable[[str], None]
) -> EnvironmentInspection:
    """What the environment reveals when it is loaded in a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-check-"))
    spec = ProcessSpec(
        run_id=f"check-{assignment.version_id}",
        command=(
            *(str(venv.python), "-P", "-m", "proctor.runner.inspection"),
            *(assignment.module, INSPECTION_FILE, *assignment.secrets),
        ),
        folder=folder,
        variables={**assignment.variables, **venv.variables},
        paths=venv.paths,
        hidden=checker.hidden,
        limits=checker.limits,
    )
    try:
        running = await launch(spec, allow_no_sandbox=checker.allow_no_sandbox)
        try:
            async with asyncio.timeout(checker.seconds):
                async for line in running.output:
                    log_line(line)
                exit_ = await running.wait()
        except TimeoutError:
            return EnvironmentInspection(
                problem=f"Loading it and counting its tasks took longer than {checker.seconds:.0f} seconds; "
                "load less up front, or yield the tasks one by one."
            )
        finally:
            await running.end(0)
        return await read_inspection(folder) or EnvironmentInspection(problem=describe_death(exit_))
    finally:
        await asyncio.to_thread(discard_tree, folder)


async def read_inspection(folder: Path) -> EnvironmentInspection | None:
    """What the process wrote before it ended; None if that cannot be read."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            content = await asyncio.to_thread(read_file, folder, INSPECTION_FILE, LONGEST_INSPECTION)
        return msgspec.json.decode(content, type=EnvironmentInspection)
    except (FileNotFoundError, UntrustedFileError, TimeoutError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def describe_death(exit_: ProcessExit) -> str:
    if exit_.reason:
        return f"Loading it exceeded the {exit_.reason} limit; load less up front."
    code = exit_.code if exit_.signal is None else -exit_.signal
    last_output = summarize_output(exit_.last_lines)
    return f"The process that loaded it {describe_exit(code)}{f': {last_output}' if last_output else ''}"


def describe_inspection(inspection: EnvironmentInspection) -> str:
    if inspection.has_more_tasks:
        return f"It installs, loads and yields more than {COUNTED_TASKS:,} tasks."
    return f"It installs, loads and yields {inspection.tasks:,} task{'' if inspection.tasks == 1 else 's'}."


async def post_idempotent(server: ServerConnection, path: str, body: Any) -> bytes:
    """The raw answer; empty if the server has nothing to return."""
    headers = {IDEMPOTENCY_HEADER: secrets.token_hex(16)}
    return await server.ask("POST", path, body=msgspec.json.encode(body), headers=headers)
