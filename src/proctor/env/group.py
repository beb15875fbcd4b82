"""Several environments as one.

Their tasks follow each other under new numbers; each remembers in its columns whose it is, so that it is
played and scored by its own environment, which never notices. Members may be any environments, groups
included. Knows nothing of how they play.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import accumulate
from types import TracebackType
from typing import Any, cast

import msgspec

from proctor.contracts import EnvironmentProtocol, GroupEnvironment, Seat, Session
from proctor.env.gold import Gold, gold_of
from proctor.env.rubric import GroupResult
from proctor.environment_members import Members
from proctor.errors import ConfigError, EnvError, GraderError, RolloutError
from proctor.optional_contracts import Configurable, RestoresSessions, get_name
from proctor.plugins import did_you_mean
from proctor.rollout import RecordedPlay, Score
from proctor.task import Task, TaskId, TaskSequence

ENV = "env"
SRC_ID = "src_id"
SRC_COLUMNS = "src_columns"
"""Where a member's own columns of these names are kept."""
ROUTING_COLUMNS = (ENV, SRC_ID, SRC_COLUMNS)


class EnvGroup(Members):
    """Routes every task to the environment it came from."""

    def __init__(
        self,
        envs: Sequence[EnvironmentProtocol],
        env_names: Sequence[str] | None = None,
        *,
        name: str = "group",
        **more: Any,
    ) -> None:
        """`more` become attributes, for code of yours that reads them."""
        if not envs:
            raise ConfigError("A group needs at least one environment.")
        super().__init__(dict(zip(names_for(envs, env_names), envs, strict=True)))
        self.name = name
        for setting, value in more.items():
            setattr(self, setting, value)

    def tasks(self) -> Iterable[Task]:
        tasks = [member.tasks() for member in self.members.values()]
        counted = [each for each in tasks if isinstance(each, Sequence)]
        return (
            GroupTaskSequence(list(self.members), counted)
            if len(counted) == len(tasks)
            else LazyGroupTasks(self)
        )

    def open(self, task: Task) -> MemberSession:
        name = task.columns.get(ENV)
        member = self.members.get(str(name))
        if member is None:
            raise EnvError(f"The group has no environment {name!r}{did_you_mean(str(name), self.members)}")
        return MemberSession(member, member.open(restore_task(task)))

    def restore(self, task: Task, recorded: RecordedPlay) -> MemberSession:
        member = self.members[str(task.columns[ENV])]
        assert isinstance(member, RestoresSessions)
        return MemberSession(member, member.restore(restore_task(task), recorded))

    def gold(self, task: Task) -> Gold:
        """The gold answer of the member that the task came from."""
        return gold_of(self.members[str(task.columns[ENV])], restore_task(task))

    async def score_group(self, played: Sequence[tuple[Session, Seat]]) -> list[GroupResult]:
        groups: dict[int, list[int]] = {}
        for index, (session, _) in enumerate(played):
            groups.setdefault(id(cast(MemberSession, session).member), []).append(index)
        results: dict[int, GroupResult] = {}
        for indexes in groups.values():
            scores = await score_together([played[index] for index in indexes])
            results.update(zip(indexes, scores, strict=True))
        return [results[index] for index in range(len(played))]

    def configure(self, settings: Mapping[str, Any]) -> None:
        for name, member in self.members.items():
            if isinstance(member, Configurable):
                member.configure(settings)
            elif settings:
                raise ConfigError(f"Environment {name!r} takes no settings, but got {', '.join(settings)}.")


class MemberSession:
    """A session of a member, and the member."""

    def __init__(self, member: EnvironmentProtocol, opening: AbstractAsyncContextManager[Session]) -> None:
        self.member = member
        self.opening = opening
        self.session: Session

    async def __aenter__(self) -> MemberSession:
        self.session = await self.opening.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self.opening.__aexit__(kind, error, trace)

    async def play(self, seat: Seat) -> None:
        await self.session.play(seat)

    async def score(self, seat: Seat) -> Score:
        return await self.session.score(seat)


class GroupTaskSequence(TaskSequence):
    """Tasks of members whose numbers are all known."""

    def __init__(self, names: Sequence[str], tasks: Sequence[Sequence[Task]]) -> None:
        self.names = names
        self.members = tasks
        self.ends = list(accumulate(len(each) for each in tasks))

    def __len__(self) -> int:
        return self.ends[-1]

    def build(self, number: int) -> Task:
        which = bisect_right(self.ends, number)
        first = self.ends[which - 1] if which else 0
        return route_task(self.members[which][number - first], number, self.names[which])


class LazyGroupTasks:
    """Tasks of members, some of an unknown number."""

    def __init__(self, group: EnvGroup) -> None:
        self.group = group

    def __iter__(self) -> Iterator[Task]:
        every = ((name, task) for name, member in self.group.members.items() for task in member.tasks())
        return (route_task(task, number, name) for number, (name, task) in enumerate(every))


def route_task(task: Task, number: TaskId, env: str) -> Task:
    """A member's task under its number in the group."""
    hidden = {name: task.columns[name] for name in ROUTING_COLUMNS if name in task.columns}
    columns = {**task.columns, ENV: env, SRC_ID: task.id}
    columns.pop(SRC_COLUMNS, None)
    if hidden:
        columns[SRC_COLUMNS] = hidden
    member = f"{env}/{task.member}" if task.member else env
    return msgspec.structs.replace(task, id=number, columns=columns, member=member)


def restore_task(task: Task) -> Task:
    """The task as its member defined it."""
    columns = {name: value for name, value in task.columns.items() if name not in ROUTING_COLUMNS}
    columns.update(task.columns.get(SRC_COLUMNS, {}))
    inner = task.member.removeprefix(str(task.columns[ENV])).removeprefix("/")
    return msgspec.structs.replace(task, id=task.columns[SRC_ID], columns=columns, member=inner)


async def score_together(played: Sequence[tuple[Session, Seat]]) -> Sequence[GroupResult]:
    """Scores of sessions of one member, whether it scores groups or not."""
    sessions = [(cast(MemberSession, session), seat) for session, seat in played]
    member = sessions[0][0].member
    if member.traits.grouped:
        grouped = cast(GroupEnvironment, member)
        return await grouped.score_group([(session.session, seat) for session, seat in sessions])
    return await asyncio.gather(*(score_alone(session, seat) for session, seat in sessions))


async def score_alone(session: Session, seat: Seat) -> GroupResult:
    """One rollout's score; a failure does not affect the scores of its siblings."""
    try:
        return await session.score(seat)
    except RolloutError as error:
        return error
    except Exception as error:
        failure = GraderError(f"scoring raised {type(error).__name__}: {error}")
        failure.__cause__ = error
        return failure


def names_for(envs: Sequence[EnvironmentProtocol], given: Sequence[str] | None) -> list[str]:
    """The names given, or the environments' own, numbered where they repeat."""
    if given is None:
        names: list[str] = []
        for env in envs:
            own = name = get_name(env) or type(env).__name__
            number = 1
            while name in names:
                number += 1
                name = f"{own}_{number}"
            names.append(name)
        return names
    if len(given) != len(envs):
        raise ConfigError(f"{len(envs)} environments but {len(given)} names; give one name for each.")
    if twice := [name for name, count in Counter(given).items() if count > 1]:
        raise ConfigError(f"Two environments of the group are called {twice[0]!r}; rename one.")
    return list(given)
