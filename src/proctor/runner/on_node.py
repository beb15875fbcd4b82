"""Play one attempt on a node of a cluster, as a host would on its own machine.

Reads its request from standard input, checks the node, answers with what it found, and plays. Speaks to the
server itself, with tokens of this attempt alone: the cluster may be out of reach meanwhile. Dies with its
parent process, by which the cluster counts its resources.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
from pathlib import Path

import msgspec

from proctor.api.runner import RunAssignment
from proctor.client.connection import ServerConnection, ServerError
from proctor.client.contexts import Context
from proctor.errors import ProctorError, describe_os_error
from proctor.isolation.limits import make_control_group
from proctor.runner.attempt import HostAttempt, HostResources
from proctor.runner.fetch import FetchRules
from proctor.runner.folder_lock import temporary_files_in_one_folder
from proctor.runner.host_settings import HostSettings
from proctor.runner.launch import NO_SANDBOX, ProcessSpec, has_bubblewrap, launch
from proctor.runner.leftovers import remove_leftovers
from proctor.runner.node_messages import NodeGreeting, NodeRequest
from proctor.runner.supervisor import forwarded_variables
from proctor.runner.venvs import Venvs
from proctor.support.logs import log
from proctor.support.loop import exit_now, raise_file_limit, run_in_loop
from proctor.support.processes import die_with_parent

ROUTE_SECONDS = 10.0
SANDBOX_SECONDS = 20.0
TEMPORARY = "proctor-node-"
NEEDED_GROUPS = frozenset({"memory", "processes"})


async def find_problems(request: NodeRequest, settings: HostSettings) -> list[str]:
    """Why this node cannot play runs; empty if it can."""
    found = [
        find_folder_problem(settings.work),
        await find_sandbox_problem(settings),
        "" if request.allow_no_control_groups else find_control_group_problem(settings),
        await find_route_problem(request.url),
    ]
    return [problem for problem in found if problem]


def find_folder_problem(work: Path) -> str:
    try:
        work.mkdir(parents=True, exist_ok=True, mode=0o711)
        with tempfile.TemporaryFile(dir=work):
            return ""
    except OSError as error:
        return (
            f"{work} cannot be written ({describe_os_error(error)}); choose another folder with --node-data."
        )


async def find_sandbox_problem(settings: HostSettings) -> str:
    """Start a program as a run is started."""
    if settings.allow_no_sandbox:
        return ""
    if not has_bubblewrap():
        return NO_SANDBOX
    with tempfile.TemporaryDirectory(prefix="check-", dir=settings.work.parent) as folder:
        spec = ProcessSpec(
            run_id="check", command=("/bin/true",), folder=Path(folder, "work"), limits=settings.limits
        )
        try:
            async with asyncio.timeout(SANDBOX_SECONDS):
                running = await launch(spec)
                ended = await running.wait()
        except TimeoutError:
            return f"A sandbox took longer than {SANDBOX_SECONDS:g} s."
        except (ProctorError, OSError) as error:
            return f"bubblewrap cannot create a sandbox: {error}"
    if ended.code == 0:
        return ""
    return f"bubblewrap cannot create a sandbox: {' '.join(ended.last_lines) or f'exit code {ended.code}'}"


def find_control_group_problem(settings: HostSettings) -> str:
    group = make_control_group("check", settings.limits)
    missing = NEEDED_GROUPS - group.watched
    group.remove()
    if not missing:
        return ""
    return (
        f"No control group can be made for {' and '.join(sorted(missing))} of a whole run; delegate one to "
        f"Ray's processes (systemd: Delegate=yes), or start the runner with --allow-no-control-groups to "
        f"limit each process of a run by itself."
    )


async def find_route_problem(url: str) -> str:
    async with ServerConnection(Context(url=url), tries=1) as server:
        try:
            await server.ask("GET", "/health", seconds=ROUTE_SECONDS)
        except ServerError as error:
            return f"The server cannot be reached from there: {error}"
    return ""


async def greet(request: NodeRequest, settings: HostSettings, greeting_to: int) -> bool:
    """Answer with what the node has; False if it cannot play."""
    problems = tuple(await find_problems(request, settings))
    with os.fdopen(greeting_to, "wb") as pipe:
        pipe.write(msgspec.json.encode(NodeGreeting(problems=problems)) + b"\n")
    return not problems


async def play(request: NodeRequest, assignment: RunAssignment, settings: HostSettings) -> None:
    server = ServerConnection(Context(url=request.url, token=assignment.delegate_token), tries=1)
    resources = HostResources(
        name=request.node_name,
        context=Context(url=request.url),
        settings=settings,
        server=server,
        venvs=Venvs(
            settings.data / "venvs",
            rules=FetchRules(direct_hosts=settings.direct_hosts),
            allow_no_sandbox=settings.allow_no_sandbox,
        ),
        wheels=settings.data / "wheels",
    )
    try:
        await tidy(server, settings.work, assignment.run_id)
        await HostAttempt(resources, assignment).play()
    finally:
        await server.close()


async def tidy(server: ServerConnection, work: Path, run_id: str) -> None:
    """Remove what earlier attempts that were killed left on this node."""
    try:
        await remove_leftovers(server, work, {run_id})
    except (ServerError, OSError) as error:
        log.warning("could not clean up the folders of runs: %s", error)


async def greet_and_play(request: NodeRequest, greeting_to: int) -> None:
    settings = HostSettings(
        data=Path(request.data).expanduser().resolve(),
        limits=request.limits,
        allow_no_sandbox=request.allow_no_sandbox,
        direct_hosts=request.direct_hosts,
    )
    if await greet(request, settings, greeting_to) and request.assignment is not None:
        await play(request, request.assignment, settings)


def keep_only_forwarded_variables() -> None:
    """A cluster's processes may have inherited keys, which neither installers nor environments may see."""
    kept = forwarded_variables(os.environ)
    os.environ.clear()
    os.environ.update(kept)


def main() -> None:
    greeting_to, parent = int(sys.argv[2]), int(sys.argv[3])
    os.set_inheritable(greeting_to, False)
    die_with_parent(parent)
    keep_only_forwarded_variables()
    raise_file_limit()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s node: %(message)s")
    request = msgspec.json.decode(sys.stdin.readline(), type=NodeRequest)
    with temporary_files_in_one_folder(TEMPORARY):
        run_in_loop(greet_and_play(request, greeting_to))
    exit_now(0)
