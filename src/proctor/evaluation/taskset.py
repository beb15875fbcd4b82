"""Tasks as a set: read from files, narrowed down, written back, and run.

    job = await Taskset.from_file("tasks.py").run("claude", group=3)
    print(job.reward, job.errors)

A thin layer over evaluation: the same engine, store and report. Knows nothing of terminals.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import msgspec

from proctor.contracts import Agent, Desk, EnvironmentProtocol, Model
from proctor.errors import ConfigError, UnknownNameError, did_you_mean
from proctor.evaluation.evaluate import evaluate
from proctor.evaluation.execute import Result
from proctor.evaluation.hub_source import fetch_tasks, read_fetched_tasks
from proctor.optional_contracts import get_name
from proctor.packages import loading as packages
from proctor.packages import task_files
from proctor.packages.task_files import Batch, TaskListEnvironment
from proctor.rollout import Rollout
from proctor.runtimes.hosted import HostedRuntime
from proctor.runtimes.remote_environment import RemoteEnvironment
from proctor.runtimes.resolve import LOCAL, resolve_provider
from proctor.runtimes.runtime import Provider
from proctor.task import Task

AnyAgent = Agent | Callable[[Desk], Awaitable[str]]


class Taskset(Sequence[Task]):
    """Tasks under a name, each with a slug of its own."""

    def __init__(
        self,
        name: str,
        tasks: Iterable[Task],
        *,
        environments: Mapping[str, EnvironmentProtocol] | None = None,
    ) -> None:
        self._batch = Batch(name=name, tasks=list(tasks), environments=dict(environments or {}))
        self._by_slug = {task.slug: task for task in self._batch.tasks}
        if len(self._by_slug) < len(self._batch.tasks):
            slugs = [task.slug for task in self._batch.tasks]
            twice = next(slug for slug in slugs if slugs.count(slug) > 1)
            raise ConfigError(
                f"Two tasks of {name!r} have the slug {twice!r}; name one of them by .with_slug(…)."
            )

    @classmethod
    def from_file(cls, path: str | Path) -> Taskset:
        """The tasks of a .py file or folder, or of a .json, .jsonl or .parquet file."""
        return cls._of(task_files.read_tasks(Path(path).expanduser()))

    @classmethod
    def from_api(cls, name: str) -> Taskset:
        """The tasks of a taskset on the server you are logged in to: `owner/name`, `owner/name@version`, or
        the name of one of your own. Its code is fetched when the tasks are run here."""
        return cls._of(fetch_tasks(name, os.environ))

    @classmethod
    def _of(cls, batch: Batch) -> Taskset:
        made = cls(batch.name, batch.tasks, environments=batch.environments)
        made._batch = batch
        return made

    def _with(self, tasks: Iterable[Task]) -> Taskset:
        return self._of(msgspec.structs.replace(self._batch, tasks=list(tasks)))

    @property
    def name(self) -> str:
        return self._batch.name

    # Which tasks

    def __len__(self) -> int:
        return len(self._batch.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._batch.tasks)

    @overload
    def __getitem__(self, which: int | str) -> Task: ...
    @overload
    def __getitem__(self, which: slice) -> Taskset: ...
    def __getitem__(self, which: int | str | slice) -> Task | Taskset:
        """A task by its index or its slug, or several by a slice."""
        if isinstance(which, str):
            return self.by_slug(which)
        tasks = self._batch.tasks
        return self._with(tasks[which]) if isinstance(which, slice) else tasks[which]

    def by_slug(self, slug: str) -> Task:
        self._check(slug)
        return self._by_slug[slug]

    def filter(self, wanted: Callable[[Task], bool]) -> Taskset:
        """Only the tasks that are wanted."""
        return self._with(task for task in self if wanted(task))

    def exclude(self, *slugs: str) -> Taskset:
        """All but these tasks."""
        for slug in slugs:
            self._check(slug)
        return self._with(task for task in self if task.slug not in slugs)

    def _check(self, slug: str) -> None:
        if slug not in self._by_slug:
            raise UnknownNameError(f"{self.name!r} has no task {slug!r}{did_you_mean(slug, self._by_slug)}")

    def __repr__(self) -> str:
        return f"Taskset({self.name!r}, {len(self)} tasks)"

    # Files

    def to_file(self, path: str | Path) -> Path:
        """Write the tasks as .json, .jsonl or .parquet, from which they can be read back."""
        file = Path(path).expanduser()
        unminted = [task.slug for task in self if not task.template]
        if unminted:
            raise ConfigError(
                f"Task {unminted[0]!r} was not made from a template, so it cannot be written to a file."
            )
        rows = [task_files.row_of(task) for task in self]
        if file.suffix == ".json":
            file.write_bytes(msgspec.json.format(msgspec.json.encode(rows)) + b"\n")
        elif file.suffix == ".jsonl":
            file.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        elif file.suffix == ".parquet":
            write_parquet(file, rows)
        else:
            raise ConfigError(f"Tasks are written to .json, .jsonl or .parquet, not to {str(file)!r}.")
        return file

    # Running

    async def run(
        self,
        agent: AnyAgent | str | None = None,
        *,
        model: Model | str | None = None,
        environment: EnvironmentProtocol | str | Path | None = None,
        runtime: Provider | str | None = None,
        group: int = 1,
        max_concurrent: int = 10,
        **settings: Any,
    ) -> Job:
        """Have an agent work on every task, `group` times each; settings are those of EvalConfig.

        `environment` plays the tasks: one that was made, the path of its file, or its name. Without one it
        is looked for where the tasks were read from, and among what is installed. `runtime` has it elsewhere:
        LocalRuntime("env.py"), DockerRuntime("image"), Runtime("tcp://host:port"), or a word for one of them.
        """
        if isinstance(runtime, str):
            code = task_files.code_of(self._with_code()) if runtime == LOCAL else ""
            runtime = resolve_provider(runtime, settings.pop("runtime_args", {}), code)
        result = await evaluate(
            self.build_environment(environment) if runtime is None else self.elsewhere(environment, runtime),
            model,
            agent=agent,
            rollouts_per_example=group,
            max_concurrent=max_concurrent,
            **settings,
        )
        return Job(self.name, result)

    def elsewhere(
        self, environment: EnvironmentProtocol | str | Path | None, runtime: Provider
    ) -> RemoteEnvironment:
        """The tasks as one environment that lives where a runtime has it."""
        if environment is not None:
            raise ConfigError("A runtime has its own environment; give one or the other.")
        self._check_some()
        package = self._batch.package
        if package and isinstance(runtime, HostedRuntime) and runtime.environment is None:
            runtime = runtime.with_environment(package)
        return RemoteEnvironment(self.name, list(self), runtime, environments=self._batch.environments)

    def _check_some(self) -> None:
        if not len(self):
            raise ConfigError(f"Taskset {self.name!r} is empty; there is nothing to run.")

    def _with_code(self) -> Batch:
        """The batch with the environments that play its tasks; those of a server are fetched."""
        batch = self._batch
        if not batch.package or batch.source is not None:
            return batch
        return msgspec.structs.replace(read_fetched_tasks(batch.package, os.environ), tasks=batch.tasks)

    def build_environment(
        self, environment: EnvironmentProtocol | str | Path | None = None
    ) -> TaskListEnvironment:
        """The tasks as one environment, every one of them checked."""
        self._check_some()
        given = resolve_environments(environment)
        batch = self._batch if given else self._with_code()
        batch = msgspec.structs.replace(batch, environments={**batch.environments, **given})
        return task_files.build_environment(batch, packages.load_by_name)


async def run_task(
    task: Task, environment: EnvironmentProtocol, agent: AnyAgent | str | None, **settings: Any
) -> Job:
    """Run one task in the environment that it was minted by, unless a runtime or another one is named."""
    known = {get_name(environment): environment}
    return await Taskset(task.slug, [task], environments=known).run(agent, **settings)


def resolve_environments(
    environment: EnvironmentProtocol | str | Path | None,
) -> dict[str, EnvironmentProtocol]:
    """Environments by name, from anything that can stand for one."""
    if environment is None:
        return {}
    if not isinstance(environment, (str, Path)):
        return {get_name(environment): environment}
    path = Path(environment).expanduser()
    if path.suffix != ".py":
        known = packages.load_by_name(str(environment))
        if known is None:
            raise UnknownNameError(
                f"No environment {str(environment)!r} is installed; give a path to its file."
            )
        return resolve_environments(known)
    if not path.is_file():
        raise ConfigError(f"There is no environment at {str(environment)!r}.")
    path = path.resolve()
    return task_files.environments_in(packages.import_file(path, packages.module_name(path.stem)))


def write_parquet(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigError(f"Writing {file} needs pyarrow: pip install 'proctor[parquet]'.") from error
    # Inputs differ from template to template, and a column has one type: they are written as JSON.
    plain = [{**row, "args": msgspec.json.encode(row["args"]).decode()} for row in rows]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(plain), file)


class Job:
    """The result of running a taskset."""

    def __init__(self, name: str, result: Result) -> None:
        self.name = name
        self.result = result
        """The run with its report and its folder."""

    @property
    def id(self) -> str:
        return self.result.run.id

    @property
    def runs(self) -> list[Rollout]:
        """Its rollouts."""
        return list(self.result.rollouts)

    @property
    def reward(self) -> float | None:
        """The mean reward of what was scored; None if nothing was. Errors do not count as zeros."""
        return self.result.summary.reward.mean

    @property
    def errors(self) -> list[Rollout]:
        """Rollouts that ended in a failure."""
        return [rollout for rollout in self if rollout.failure is not None]

    @property
    def results(self) -> dict[str, list[Rollout]]:
        """Rollouts by the slug of their task."""
        by_slug: dict[str, list[Rollout]] = {}
        for rollout in self:
            by_slug.setdefault(rollout.task.slug, []).append(rollout)
        return by_slug

    def __iter__(self) -> Iterator[Rollout]:
        return iter(self.result.rollouts)

    def __len__(self) -> int:
        return len(self.result.rollouts)

    def __repr__(self) -> str:
        return f"Job({self.name!r}, {len(self)} rollouts, reward {self.reward})"
