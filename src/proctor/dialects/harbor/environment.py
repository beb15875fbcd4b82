"""Tasks of Harbor as an environment: a container per rollout, the agent's tools in it, then the tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from proctor.contracts import CommandResult, Seat, Traits
from proctor.dialects.harbor import rewards
from proctor.dialects.harbor.container import KEEP_RUNNING, ContainerWorkspace, open_container
from proctor.dialects.harbor.images import TaskImages
from proctor.dialects.harbor.task_folder import (
    NO_NETWORK,
    HealthcheckSection,
    TaskFolder,
    describe_unsupported,
    hash_folder,
    resolve_variables,
)
from proctor.env.template_rollout import FunctionTools
from proctor.errors import AgentError, ConfigError, EnvError, GraderError
from proctor.rollout import Score
from proctor.runtimes.container_spec import ContainerSpec
from proctor.runtimes.docker_client import Docker, DockerError
from proctor.support.threads import Threads
from proctor.task import Task
from proctor.workspaces.tools import bind_tools

LOGS = ("/logs/agent", "/logs/verifier", "/logs/artifacts")
VERIFIER = "/logs/verifier"
COMMAND_SECONDS = 600.0
"""How long one call of a tool may take; the agent's own time limit comes on top."""
SOLUTION_SECONDS = 24 * 3600.0
MOST_PIDS = 4096
LEASE_SECONDS = 24 * 3600.0
KEPT_CHARACTERS = 20_000


class HarborEnvironment:
    """Task folders; what each needs is in its `task.toml`."""

    traits = Traits(wants_agent=True)

    def __init__(self, name: str, folders: Sequence[TaskFolder]) -> None:
        self.name = name
        self.folders = {folder.name: folder for folder in folders}
        self.images = TaskImages()
        self.threads = Threads()

    def tasks(self) -> Sequence[Task]:
        return [folder.as_task() for folder in self.folders.values()]

    @property
    def provenance(self) -> Mapping[str, Any]:
        hashes = {name: hash_folder(folder.path) for name, folder in self.folders.items()}
        return {"task_hashes": hashes, "class": f"{type(self).__module__}.{type(self).__name__}"}

    @property
    def selection(self) -> str:
        return "every folder with a task.toml"

    async def check(self) -> None:
        """Remove containers of dead runs; raise if no task could be played."""
        try:
            await Docker().reap()
        except DockerError as error:
            raise ConfigError(
                f"The Docker engine does not answer; start it, or point DOCKER_HOST to it: {error}"
            ) from error
        reasons = [describe_unsupported(folder) for folder in self.folders.values()]
        if all(reasons):
            raise ConfigError(f"{reasons[0]}.")

    async def close(self) -> None:
        """Containers are removed with their rollouts."""

    @asynccontextmanager
    async def open(self, task: Task) -> AsyncIterator[HarborSession]:
        folder = self.folders[str(task.id)]
        if (reason := describe_unsupported(folder)) is not None:
            raise EnvError(reason)
        environment = folder.config.environment
        variables = resolve_variables(environment.env, f"{folder.name}/task.toml")
        spec = build_spec(folder, await self.images.find(folder))
        async with open_container(spec, folder.name, variables) as container:
            workspace = TaskWorkspace(container, folder)
            await workspace.prepare()
            yield HarborSession(folder, workspace, self.threads)


def build_spec(folder: TaskFolder, image_id: str) -> ContainerSpec:
    environment = folder.config.environment
    megabytes = environment.megabytes
    return ContainerSpec(
        image=image_id,
        port=0,
        command=KEEP_RUNNING,
        memory=None if megabytes is None else f"{megabytes}m",
        cpus=environment.cpus,
        pids=MOST_PIDS,
        network="none" if environment.network == NO_NETWORK else "bridge",
        user=None,
        mounts=(),
        run_args=(),
        labels={},
        sandbox=False,
        lease_seconds=LEASE_SECONDS,
    )


class TaskWorkspace(ContainerWorkspace):
    """A task's container, with the scripts of its folder."""

    def __init__(self, name: str, task: TaskFolder) -> None:
        super().__init__(name, user=task.config.agent.user, folder=task.config.environment.workdir)
        self.task = task

    async def prepare(self) -> None:
        """The folders that Harbor promises, writable for every user; then the health check."""
        await self.check_run("root", ["mkdir", "-p", *LOGS])
        await self.check_run("root", ["chmod", "777", *LOGS])
        healthcheck = self.task.config.environment.healthcheck
        if healthcheck is not None:
            await self._wait_until_healthy(healthcheck)

    async def solve(self) -> CommandResult:
        """Run the solution that the task brings, as Harbor's oracle does it."""
        if not (self.task.solution / "solve.sh").is_file():
            raise AgentError(f"{self.task.name} has no solution/solve.sh")
        await self.copy_in(self.task.solution, "/solution")
        await self.check_run("root", ["chmod", "+x", "/solution/solve.sh"])
        given = resolve_variables(self.task.config.solution.env, f"{self.task.name}/task.toml")
        variables = {"DEBIAN_FRONTEND": "noninteractive", **given}
        return await self.run("/solution/solve.sh", seconds=SOLUTION_SECONDS, variables=variables)

    async def verify(self) -> tuple[Score, str]:
        """Run the tests; the score, and what they printed."""
        verifier = self.task.config.verifier
        variables = resolve_variables(verifier.env, f"{self.task.name}/task.toml")
        # Harbor keeps what exists; a reward that the agent wrote itself must not count.
        await self.check_run("root", ["rm", "-rf", f"{VERIFIER}/reward.txt", f"{VERIFIER}/reward.json"])
        await self.copy_in(self.task.tests, "/tests")
        await self.check_run("root", ["chmod", "+x", "/tests/test.sh"])
        ran = await self.execute(
            "/tests/test.sh", seconds=verifier.timeout_sec, variables=variables, user=verifier.user
        )
        if ran.code is None:
            raise GraderError(f"tests/test.sh of {self.task.name} took more than {verifier.timeout_sec:g} s")
        texts = [await self.read_text(f"{VERIFIER}/{name}") for name in ("reward.json", "reward.txt")]
        return rewards.read_score(texts[0], texts[1], ran.output), ran.output

    async def _wait_until_healthy(self, check: HealthcheckSection) -> None:
        await asyncio.sleep(check.start_period_sec)
        ran = CommandResult(None)
        for attempt in range(max(1, check.retries)):
            if attempt:
                await asyncio.sleep(check.interval_sec)
            ran = await self.execute(check.command, seconds=check.timeout_sec)
            if ran.code == 0:
                return
        raise EnvError(f"the health check of {self.task.name} failed: {ran.output.strip()[-500:]}")


class HarborSession:
    """One attempt at one task."""

    def __init__(self, folder: TaskFolder, workspace: TaskWorkspace, threads: Threads) -> None:
        self.folder = folder
        self.workspace = workspace
        tools = bind_tools(workspace, COMMAND_SECONDS)
        self.toolbox = FunctionTools(tools, threads, workspace, nullcontext)

    async def play(self, seat: Seat) -> None:
        """If the agent's time is up, the tests still run, as in Harbor."""
        messages = [{"role": "user", "content": self.folder.instruction}]
        try:
            async with asyncio.timeout(self.folder.config.agent.timeout_sec):
                await seat.drive(messages, self.toolbox)
        except TimeoutError:
            seat.trace.timed_out, seat.trace.stop_condition = True, "agent_timeout"

    async def score(self, seat: Seat) -> Score:
        score, printed = await self.workspace.verify()
        seat.facts = {**seat.facts, "verifier_output": printed[-KEPT_CHARACTERS:]}
        return Score(score.reward, {**score.metrics, **self.toolbox.metrics()})
