"""A task that was minted in this process: it knows the environment that plays it, so it can be run alone.

Knows nothing of evaluations; they are looked up when a task is run.
"""

from __future__ import annotations

from typing import Any

import msgspec

from proctor import plugins
from proctor.errors import ConfigError
from proctor.task import Task

ENVIRONMENT = "environment"


class MintedTask(Task, frozen=True, kw_only=True, eq=False, dict=True):
    """A task of a template of this process."""

    def with_slug(self, slug: str) -> MintedTask:
        return bind_task(msgspec.structs.replace(self, id=slug), self.__dict__[ENVIRONMENT])

    async def run(self, agent: Any = None, **settings: Any) -> Any:
        """Have an agent work on this task; a Job, as `Taskset.run` returns it, with the same settings."""
        environment = self.__dict__.get(ENVIRONMENT)
        if environment is None:
            raise ConfigError(f"Task {self.slug!r} was copied; run it as Taskset({self.slug!r}, [task]).")
        run_task = plugins.load(plugins.RUNNERS, "task")
        return await run_task(self, environment, agent, **settings)


def bind_task(task: Task, environment: Any) -> MintedTask:
    """The same task, with the environment that plays it."""
    fields = {name: getattr(task, name) for name in task.__struct_fields__}
    minted = MintedTask(**fields)
    minted.__dict__[ENVIRONMENT] = environment
    return minted
