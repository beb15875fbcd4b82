"""Tasks from files, and the environments they name, as one environment.

A Python file offers tasks as `tasks`, or as any lists of tasks in it. A .json, .jsonl or .parquet file has a
row for each: `{"env": "letters", "template": "count", "args": {"word": "pear"}, "slug": "easy"}`, of which
`args` and `slug` may be missing. An environment is looked for in the Python file, in `env.py` beside it, and
among what is installed. Knows nothing of models or runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from proctor.contracts import PASS_THRESHOLD, EnvironmentProtocol, Session
from proctor.environment_members import Members
from proctor.errors import ConfigError, EnvError, FileError, UnknownNameError, did_you_mean
from proctor.optional_contracts import get_pass_threshold, get_version
from proctor.packages.modules import import_file
from proctor.packages.source import read_source
from proctor.rollout import RecordedPlay
from proctor.task import Task, default_slug

DATA = (".json", ".jsonl", ".parquet")
ENV_FILE = "env.py"
TASKS = "tasks"
FIRST_CHOICE = ("tasks.py", *(f"tasks{suffix}" for suffix in DATA))
NO_TASKS = ("conftest.py", "setup.py")
TEMPLATE_FIELDS = ("template", "task", "id")
KNOWN = frozenset({"env", "args", "slug", *TEMPLATE_FIELDS})

FindEnvironment = Callable[[str], EnvironmentProtocol | None]
"""Finds an installed environment by its name."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks, and what is known about their environments."""

    name: str
    tasks: list[Task]
    environments: dict[str, EnvironmentProtocol] = {}
    folder: Path | None = None
    """Where to look for missing environments."""
    source: Path | None = None
    """The file or folder the tasks were read from."""
    package: str = ""
    """`owner/name@version` on a hub, if they came from there."""


# Reading


def is_data(path: Path) -> bool:
    return path.suffix in DATA and not path.is_dir()


def read_tasks(path: Path) -> Batch:
    """The tasks of a file or folder."""
    if not path.exists():
        raise ConfigError(f"There are no tasks at {str(path)!r}.")
    path = path.resolve()
    if path.is_dir():
        batch = read_folder(path)
    elif is_data(path):
        batch = Batch(name=path.stem, tasks=read_rows(path), folder=path.parent)
    elif path.suffix == ".py":
        batch = batch_from_module(import_file(path, path.stem.replace("-", "_")))
    else:
        raise ConfigError(f"{path} is not a file of tasks; its name must end in .py, {', '.join(DATA)}.")
    return msgspec.structs.replace(batch, source=path)


def code_of(batch: Batch) -> str:
    """The file or folder that defines the tasks' environments, to load them in another process; or empty."""
    source = batch.source
    if source is not None and not is_data(source):
        return str(source)
    neighbor = None if batch.folder is None else batch.folder / ENV_FILE
    return str(neighbor) if neighbor is not None and neighbor.is_file() else ""


def read_folder(folder: Path) -> Batch:
    files = files_in(folder)
    if not files:
        raise ConfigError(f"{folder} holds no tasks; write them into {folder.name}/tasks.py.")
    tasks: dict[str, Task] = {}
    environments: dict[str, EnvironmentProtocol] = {}
    for file in files:
        if is_data(file):
            return msgspec.structs.replace(read_tasks(file), name=folder.name)
        module = import_file(file, file.stem)
        environments.update(environments_in(module))
        tasks.update((task.slug, task) for task in tasks_in(module))  # neighbors import each other's tasks
    if not tasks:
        raise ConfigError(f"No file of {folder} has tasks; write tasks = […] into {folder.name}/tasks.py.")
    return Batch(name=folder.name, tasks=list(tasks.values()), environments=environments, folder=folder)


def files_in(folder: Path) -> list[Path]:
    """The files of a folder that may have tasks: one named tasks, or else every Python file."""
    chosen = [folder / name for name in FIRST_CHOICE if (folder / name).is_file()]
    if chosen:
        return chosen[:1]
    return [
        file
        for file in sorted(folder.glob("*.py"))
        if not file.name.startswith(("_", "test_")) and file.name not in NO_TASKS
    ]


def has_tasks(folder: Path) -> bool:
    """Whether a folder says by its files' names that it holds tasks or templates."""
    return any((folder / name).is_file() for name in (*FIRST_CHOICE, ENV_FILE))


def find_environment_file(path: Path) -> list[Path]:
    """The file of the environment that belongs to a file of tasks."""
    neighbor = path.parent / ENV_FILE
    if path.name == ENV_FILE or not neighbor.is_file():
        return []
    is_tasks = is_data(path) or read_source(path).loader == "missing"
    return [neighbor] if is_tasks else []


# Python


def batch_from_module(module: ModuleType) -> Batch:
    """The tasks that a module offers."""
    file = Path(module.__file__) if module.__file__ else None
    environments, tasks = environments_in(module), tasks_in(module)
    if not tasks:
        raise ConfigError(describe_no_tasks(module, environments))
    return Batch(
        name=module.__name__,
        tasks=tasks,
        environments=environments,
        folder=None if file is None else file.parent,
    )


def tasks_in(module: ModuleType) -> list[Task]:
    """`tasks` of a module, or else every task and list of tasks in it, each task once."""
    named = vars(module).get(TASKS)
    refuse_strangers(module, named)
    values = [named] if named is not None else list(vars(module).values())
    found = {id(task): task for value in values for task in tasks_of(value)}
    return list(found.values())


def refuse_strangers(module: ModuleType, named: object) -> None:
    """Refuse `tasks` that contain anything else: a mistake, not a list to skip."""
    if not isinstance(named, (list, tuple)) or not any(isinstance(each, Task) for each in named):
        return
    for index, each in enumerate(named):
        if not isinstance(each, Task):
            raise ConfigError(
                f"tasks[{index}] in {module.__file__} is of type {type(each).__name__}, not a task; "
                "call a template to mint one."
            )


def tasks_of(value: object) -> Sequence[Task]:
    if isinstance(value, Task):
        return [value]
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        return []
    return list(value) if all(isinstance(each, Task) for each in value) else []


def environments_in(module: ModuleType, follow: bool = True) -> dict[str, EnvironmentProtocol]:
    """Environments of a module by name: its own, those of its templates, and of its neighbors'."""
    found: dict[str, EnvironmentProtocol] = {}
    for value in list(vars(module).values()):
        if isinstance(value, ModuleType):
            if follow and are_neighbors(value, module):
                found = {**environments_in(value, follow=False), **found}
            continue
        either: Sequence[Any] = (value, getattr(value, "__dict__", {}).get("environment"))
        found.update((each.name, each) for each in either if is_environment(each))
    return found


def is_environment(value: Any) -> bool:
    """Whether this is an environment with templates and a name."""
    wanted = ("name", "tasks", "open", "check_task", "close")
    return not isinstance(value, type) and all(name in dir(value) for name in wanted)


def are_neighbors(one: ModuleType, other: ModuleType) -> bool:
    files = [getattr(module, "__file__", None) for module in (one, other)]
    return None not in files and len({str(Path(str(file)).parent) for file in files}) == 1


def describe_no_tasks(module: ModuleType, environments: Mapping[str, EnvironmentProtocol]) -> str:
    where = f"{module.__name__} ({module.__file__})"
    templates = [
        template for each in environments.values() for template in getattr(each, "templates", {}).values()
    ]
    if not templates:
        return f"{where} has no load_environment() function and no tasks."
    name = getattr(templates[0], "__name__", templates[0].id)
    return f"{where} has templates but no tasks; mint some, as in tasks = [{name}(…)]."


# Rows


def read_rows(path: Path) -> list[Task]:
    """The tasks of a data file; all its problems are reported together, by line."""
    tasks: list[Task] = []
    problems: list[tuple[int, str]] = []
    for line, row in numbered_rows(path):
        try:
            tasks.append(task_of(row))
        except ValueError as error:
            problems.append((line, str(error)))
    if problems:
        raise FileError(str(path), problems)
    if not tasks:
        raise ConfigError(f"{path} has no tasks; write one row for each.")
    return tasks


def numbered_rows(path: Path) -> Iterator[tuple[int, Any]]:
    if path.suffix == ".parquet":
        yield from enumerate(parquet_rows(path), 1)
        return
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    if path.suffix == ".json":
        yield from enumerate(json_rows(content, path), 1)
        return
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            yield number, decode_json(line, f"{path}:{number}")


def json_rows(content: bytes, path: Path) -> list[Any]:
    rows = decode_json(content, str(path))
    if isinstance(rows, Mapping):
        rows = rows.get(TASKS, [rows])
    if not isinstance(rows, list):
        raise ConfigError(f"{path} must be a list of tasks.")
    return rows


def decode_json(content: bytes, where: str) -> Any:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ConfigError(f"{where}: not valid JSON ({error}).") from error


def parquet_rows(path: Path) -> list[dict[str, Any]]:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigError(f"Reading {path} needs pyarrow: pip install 'proctor[parquet]'.") from error
    try:
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    except (OSError, pyarrow.lib.ArrowException) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def task_of(row: Any) -> Task:
    """The task of a row, or a ValueError."""
    if not isinstance(row, Mapping):
        raise ValueError("a task is an object with `env`, `template` and `args`.")
    env, args, slug = row.get("env"), row.get("args"), row.get("slug")
    env = env.get("name") if isinstance(env, Mapping) else env
    template = next((row[name] for name in TEMPLATE_FIELDS if row.get(name)), None)
    for name, value in (("env", env), ("template", template)):
        if not isinstance(value, str) or not value:
            raise ValueError(f"`{name}` is missing; a task names its environment and its template.")
    args = decode_args(args)
    if slug is not None and (not isinstance(slug, str) or not slug):
        raise ValueError(f"`slug` must be a string, not {slug!r}.")
    return Task(
        id=slug or default_slug(str(template), args),
        env=str(env),
        template=str(template),
        args=args,
        columns={name: value for name, value in row.items() if name not in KNOWN},
    )


def decode_args(args: Any) -> dict[str, Any]:
    """The inputs, which text tables hold as JSON."""
    if isinstance(args, str):
        try:
            args = msgspec.json.decode(args) if args.strip() else {}
        except msgspec.DecodeError as error:
            raise ValueError(f"`args` is not valid JSON ({error}).") from error
    if args is None:
        return {}
    if not isinstance(args, Mapping):
        raise ValueError(f"`args` must be an object, not {args!r}.")
    return dict(args)


def row_of(task: Task) -> dict[str, Any]:
    """The row from which `task_of` restores the task."""
    return {**task.columns, "env": task.env, "template": task.template, "args": task.args, "slug": task.slug}


# Environments


def build_environment(batch: Batch, named: FindEnvironment) -> TaskListEnvironment:
    """The tasks as one environment, each of them checked."""
    return TaskListEnvironment(batch.name, batch.tasks, members_of(batch, named))


def members_of(batch: Batch, named: FindEnvironment) -> dict[str, EnvironmentProtocol]:
    members = dict(batch.environments)
    wanted = list(dict.fromkeys(task.env for task in batch.tasks))
    neighbor = None if batch.folder is None else batch.folder / ENV_FILE
    if neighbor is not None and neighbor.is_file() and any(name not in members for name in wanted):
        members = {**environments_in(import_file(neighbor, neighbor.stem)), **members}
    for name in wanted:
        if name not in members:
            installed = named(name) if name else None
            if installed is None:
                raise UnknownNameError(describe_unknown_env(name, batch, members))
            if not is_environment(installed):
                raise ConfigError(f"Environment {name!r} has no templates, so no task can be minted from it.")
            members[name] = installed
    return {name: members[name] for name in wanted}


def describe_unknown_env(name: str, batch: Batch, members: Mapping[str, EnvironmentProtocol]) -> str:
    task = next(task for task in batch.tasks if task.env == name)
    if not name:
        return f"Task {task.slug!r} of {batch.name!r} names no environment."
    beside = "" if batch.folder is None else f", in {ENV_FILE} beside it"
    return (
        f"Task {task.slug!r} needs the environment {name!r}, which is neither in {batch.name!r}{beside}, "
        f"nor installed{did_you_mean(name, members)}"
    )


def label_members(tasks: Sequence[Task]) -> list[Task]:
    """The tasks, each with the name of its environment if there are several."""
    if len({task.env for task in tasks}) < 2:
        return list(tasks)
    return [msgspec.structs.replace(task, member=task.env) for task in tasks]


class TaskListEnvironment(Members):
    """Tasks of several environments as one; each is played by the environment that it names."""

    def __init__(self, name: str, tasks: Sequence[Task], members: Mapping[str, EnvironmentProtocol]) -> None:
        super().__init__(members)
        self.name = name
        self._tasks = label_members(tasks)
        if twice := [slug for slug, count in Counter(task.slug for task in tasks).items() if count > 1]:
            raise ConfigError(
                f"Two tasks of {name!r} have the slug {twice[0]!r}; rename one with .with_slug(…)."
            )
        for task in tasks:
            self.member_of(task).check_task(task)

    @property
    def version(self) -> str | None:
        versions = {get_version(member) for member in self.members.values()}
        return versions.pop() if len(versions) == 1 else None

    @property
    def pass_threshold(self) -> float:
        thresholds = {get_pass_threshold(member) for member in self.members.values()}
        return thresholds.pop() if len(thresholds) == 1 else PASS_THRESHOLD

    def tasks(self) -> Sequence[Task]:
        return self._tasks

    def member_of(self, task: Task) -> Any:
        member = self.members.get(task.env)
        if member is None:
            near = did_you_mean(task.env, self.members)
            raise EnvError(f"{self.name!r} has no environment {task.env!r}{near}")
        return member

    def open(self, task: Task) -> AbstractAsyncContextManager[Session]:
        opened: AbstractAsyncContextManager[Session] = self.member_of(task).open(task)
        return opened

    def restore(self, task: Task, recorded: RecordedPlay) -> AbstractAsyncContextManager[Session]:
        restored: AbstractAsyncContextManager[Session] = self.member_of(task).restore(task, recorded)
        return restored
