"""Load an environment from a name or a path.

An environment is a module with `load_environment(**args)`, or with tasks: a path to a .py file, a folder in
./environments, a name registered by a plugin, or an installed package. A file of tasks is one too, made of
the environments that its tasks name. Knows nothing of models or runs.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from proctor import plugins
from proctor.contracts import EnvironmentProtocol
from proctor.errors import ConfigError, FileError, ProctorError, UnknownNameError, find_author_line
from proctor.optional_contracts import get_name, get_version
from proctor.packages import task_files
from proctor.packages.dialects import Dialect, DialectLoader, find_dialect, refuse_isolation
from proctor.packages.modules import describe_error as describe_error
from proctor.packages.modules import import_file as import_file
from proctor.packages.modules import import_from
from proctor.packages.modules import import_module as import_module
from proctor.plugins import did_you_mean

PUBLISHED_NAME = re.compile(r"[\w-]+/[\w.-]+(@[\w.+-]+)?")
"""How an environment on a server is called."""
MEMBER = re.compile(r"(?P<file>.+\.py)@(?P<member>[A-Za-z_]\w*)")
"""One of several environments in a file, as `tasks.py@arithmetic`."""
DEFAULTS_TABLES = ("proctor", "verifiers")
CARRIED_PYPROJECT = "extra_metadata/pyproject.toml"
"""Where a wheel keeps it; beside the module it would lie among all packages' files."""
BY_NAME = "proctor.utils.env_utils"
"""The module of `proctor.load_environment`."""


class EnvironmentLocation(msgspec.Struct, frozen=True, kw_only=True):
    """Where an environment was found."""

    env_id: str
    module: str
    path: Path | None = None
    """Its file or folder, unless it is an installed package."""
    registered: bool = False
    isolated: bool = False
    """Foreign code runs in a virtual environment of its own, even if this one has what it needs."""
    member: str = ""
    """Which one of several in its file is meant; empty for the only one."""

    @property
    def address(self) -> str | None:
        """What finds it again; None for an installed package."""
        return None if self.path is None else f"{self.path}@{self.member}" if self.member else str(self.path)


def find_environment(env_id: str, env_dir: str = "./environments") -> EnvironmentLocation:
    """Find an environment without importing it."""
    if (match := MEMBER.fullmatch(env_id)) is not None:
        found = find_environment(match["file"], env_dir)
        member = match["member"]
        return msgspec.structs.replace(found, env_id=f"{found.env_id}@{member}", member=member)
    if env_id.endswith((".py", *task_files.DATA)) or env_id.startswith((".", "/", "~")) or "\\" in env_id:
        path = Path(env_id).expanduser().resolve()
        if not path.exists():
            raise ConfigError(f"There is no environment at {env_id!r}.")
        name = path.stem if path.is_file() else path.name
        return EnvironmentLocation(env_id=name, module=module_name(name), path=path)
    module = module_name(env_id.partition("@")[0])
    local = Path(env_dir) / module
    if local.is_dir():
        return EnvironmentLocation(env_id=env_id, module=module, path=local.resolve())
    if plugins.find_entry_point(plugins.ENVIRONMENTS, env_id) is not None:
        return EnvironmentLocation(env_id=env_id, module=module, registered=True)
    if is_importable(module):
        return EnvironmentLocation(env_id=env_id, module=module)
    missing = f"No environment {env_id!r}: {module!r} is neither installed nor a folder in {env_dir}"
    if PUBLISHED_NAME.fullmatch(env_id):
        raise UnknownNameError(
            f"{missing}. If it is on a server, log in with `proctor login URL`; then this command fetches "
            f"it, --hosted runs it there, and `proctor env install {env_id}` installs it."
        )
    known = [*plugins.list_environments(), *local_names(env_dir)]
    near = did_you_mean(env_id, known)
    could_be_pushed = "did you mean" not in near and PUBLISHED_NAME.fullmatch(f"owner/{env_id}") is not None
    pushed = f" One that was pushed to a server is called OWNER/{env_id}." if could_be_pushed else ""
    raise UnknownNameError(f"{missing}{near}{pushed}")


def load(found: EnvironmentLocation, arguments: Mapping[str, Any]) -> EnvironmentProtocol:
    """Import and create the environment."""
    return call_loader(import_loader(found), arguments, found)


def import_loader(found: EnvironmentLocation) -> Any:
    """The environment's load_environment(), imported now."""
    if found.registered:
        return plugins.load(plugins.ENVIRONMENTS, found.env_id)
    dialect = dialect_of(found)
    if dialect is not None:
        return DialectLoader(dialect, found)
    refuse_isolation(found)
    if found.member:
        raise ConfigError(
            f"@{found.member} chooses a task of a file that imports inspect_ai, and this one does not; "
            f"leave it out."
        )
    source = find_task_source(found)
    return loader_of(import_environment(found)) if source is None else TaskLoader(read_batch(source, found))


def dialect_of(found: EnvironmentLocation) -> Dialect | None:
    """The dialect that it is written in; None if it is an environment of Proctor's own."""
    return None if found.registered else find_dialect(found, source_files(found))


def load_tasks(found: EnvironmentLocation) -> task_files.Batch | None:
    """The tasks found there, and where the code of their environments is; None if it owns its turns."""
    source = find_task_source(found)
    if source is not None:
        return read_batch(source, found)
    loader = import_loader(found)
    source = main_file(found)
    if source is not None and source.name == "__init__.py":
        source = source.parent
    if isinstance(loader, TaskLoader):
        return msgspec.structs.replace(loader.batch, source=source)
    environment = call_loader(loader, {}, found)
    if not environment.traits.wants_agent:
        return None
    name = get_name(environment) or found.env_id
    offered = {name: environment} if task_files.is_environment(environment) else {}
    return task_files.Batch(
        name=found.env_id, tasks=list(environment.tasks()), environments=offered, source=source
    )


class TaskLoader:
    """Creates an environment from tasks, in place of a load_environment()."""

    def __init__(self, batch: task_files.Batch) -> None:
        self.batch = batch

    def __call__(self) -> EnvironmentProtocol:
        return task_files.build_environment(self.batch, load_by_name)


def load_by_name(env: str) -> EnvironmentProtocol | None:
    """The environment of that name, installed or in ./environments; None if there is none."""
    try:
        found = find_environment(env)
    except UnknownNameError:
        return None
    source = find_task_source(found)
    if not found.registered:
        offered = (
            task_files.environments_in(import_environment(found))
            if source is None
            else read_batch(source, found).environments
        )
        if env in offered:
            return offered[env]
    return load(found, {})


def find_task_source(found: EnvironmentLocation) -> Path | None:
    """The file or folder of tasks that an environment is; None if it is a module."""
    path = found.path
    if path is None:
        return None if found.registered else find_installed_tasks(found.module)
    return path if task_files.is_data(path) or is_task_folder(path, found.module) else None


def read_batch(source: Path, found: EnvironmentLocation) -> task_files.Batch:
    """Its tasks, under the name that it was found by: a fetched one lies in a folder named otherwise."""
    batch = task_files.read_tasks(source)
    return msgspec.structs.replace(batch, name=found.env_id) if source.is_dir() else batch


def is_task_folder(path: Path, module: str) -> bool:
    return path.is_dir() and module_file(path, module) is None and bool(task_files.files_in(path))


def find_installed_tasks(module: str) -> Path | None:
    """The folder of an installed package that consists of tasks: `tasks.py` or `env.py`, and no module of its
    own."""
    try:
        spec = importlib.util.find_spec(module) if module.isidentifier() else None
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is not None:
        return None
    folders = map(Path, spec.submodule_search_locations or ())
    return next((folder for folder in folders if task_files.has_tasks(folder)), None)


def call_loader(loader: Any, arguments: Mapping[str, Any], found: EnvironmentLocation) -> EnvironmentProtocol:
    """Call a loader; ConfigError unless it returns an environment."""
    check_arguments(loader, arguments, found.env_id)
    try:
        environment = loader(**arguments)
    except FileError:
        raise
    except ConfigError as error:
        line = find_author_line(error)
        raise type(error)(f"{error} ({line})" if line else str(error)) from error
    except ProctorError:
        raise
    except SystemExit as error:
        raise ConfigError(
            f"load_environment() of {found.env_id!r} called sys.exit({error.code!r}); have it raise an error "
            "that says what is missing."
        ) from error
    except Exception as error:
        raise ConfigError(f"load_environment() of {found.env_id!r} raised {describe_error(error)}") from error
    missing = [
        name for name in ("tasks", "open", "traits", "check", "close") if not hasattr(environment, name)
    ]
    if missing:
        raise ConfigError(
            f"load_environment() of {found.env_id!r} returned {type(environment).__name__}, "
            f"which is not an environment: it lacks {', '.join(missing)}."
        )
    loaded: EnvironmentProtocol = environment
    return loaded


def loader_of(module: ModuleType) -> Any:
    """The module's load_environment(), or a loader for the tasks in it."""
    loader = getattr(module, "load_environment", None)
    # `from proctor import *` brings the function that loads environments by name; it is not the author's.
    if callable(loader) and getattr(loader, "__module__", None) != BY_NAME:
        return loader
    return TaskLoader(task_files.batch_from_module(module))


def import_environment(found: EnvironmentLocation) -> ModuleType:
    """Import the environment's module, from its own folder if it has one."""
    path = found.path
    if path is None:
        return import_module(found.module)
    if task_files.is_data(path):
        raise ConfigError(f"{path} holds tasks but no code; name their environment.")
    if path.is_file():
        return import_file(path, found.module)
    file = module_file(path, found.module)
    if file is None:
        raise ConfigError(f"{path} holds neither {found.module}.py nor a package {found.module}.")
    return import_from(file.parent.parent if file.name == "__init__.py" else file.parent, found.module)


def module_file(folder: Path, module: str) -> Path | None:
    """The file in an environment's folder that holds its module."""
    candidates = [
        path
        for root in (folder, folder / "src")
        for path in (root / module / "__init__.py", root / f"{module}.py")
    ]
    return next((path for path in (*candidates, folder / "__init__.py") if path.is_file()), None)


def main_file(found: EnvironmentLocation) -> Path | None:
    """The file that holds load_environment(), as far as can be seen without importing it."""
    path = found.path
    if path is not None and task_files.is_data(path):
        return None
    source = find_task_source(found)
    if source is not None and source.is_dir():
        return next((file for file in task_files.files_in(source) if file.suffix == ".py"), None)
    if path is not None:
        return path if path.is_file() else module_file(path, found.module)
    point = plugins.find_entry_point(plugins.ENVIRONMENTS, found.env_id) if found.registered else None
    try:
        spec = importlib.util.find_spec(point.module if point else found.module)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.origin and spec.has_location else None


def check_arguments(loader: Any, arguments: Mapping[str, Any], env_id: str) -> None:
    parameters = inspect.signature(loader).parameters
    if arguments and isinstance(loader, TaskLoader):
        raise ConfigError(f"{env_id!r} is a file of tasks and takes no arguments; leave out -a.")
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name in arguments:
        if name not in parameters:
            raise ConfigError(
                f"load_environment() of {env_id!r} takes no argument {name!r}{did_you_mean(name, parameters)}"
            )
    missing = [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty and name not in arguments and parameter.kind.name[:3] != "VAR"
    ]
    if missing:
        raise ConfigError(
            f"load_environment() of {env_id!r} needs {', '.join(missing)}; pass it with -a '{{…}}'."
        )


def package_defaults(found: EnvironmentLocation) -> tuple[dict[str, Any], str]:
    """Evaluation settings from the package's pyproject.toml, and the table that holds them."""
    for where, content in pyprojects(found):
        tool = content.get("tool", {})
        for table in DEFAULTS_TABLES:
            defaults = tool.get(table, {}).get("eval")
            if defaults:
                return dict(defaults), f"[tool.{table}.eval] of {where}"
    return {}, ""


def pyprojects(found: EnvironmentLocation) -> Iterator[tuple[str, dict[str, Any]]]:
    """The environment's pyproject.toml, with a short name of its location: beside it, or in its wheel."""
    for folder in folders_of(found):
        file = folder / "pyproject.toml"
        if file.is_file():
            content = read_pyproject(file)
            if found.path is not None or is_pyproject_of(content, found.module):
                yield f"{folder.name}/pyproject.toml", content
    if found.path is None and not found.registered:
        distribution = distribution_of(found)
        text = distribution.read_text(CARRIED_PYPROJECT) if distribution else None
        if text:
            where = f"pyproject.toml of {found.env_id}"
            yield where, parse_pyproject(text, where)


def is_pyproject_of(content: Mapping[str, Any], module: str) -> bool:
    """Some wheels install their pyproject.toml at the top level, so this may be another package's."""
    name = content.get("project", {}).get("name")
    return name is None or module_name(str(name)).lower() == module.lower()


def read_pyproject(file: Path) -> dict[str, Any]:
    try:
        return parse_pyproject(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}.") from error


def parse_pyproject(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not valid TOML: {error}.") from error


def folders_of(found: EnvironmentLocation) -> list[Path]:
    """Folders that may hold the environment's pyproject.toml."""
    path = found.path
    if found.registered:
        return []
    if path is None:
        tasks = find_installed_tasks(found.module)
        spec = importlib.util.find_spec(found.module)
        if tasks is not None or spec is None or spec.origin is None:
            return [] if tasks is None else [tasks]
        home = Path(spec.origin).parent
        return [home, home.parent] if spec.submodule_search_locations else [home]
    return [path.parent] if path.is_file() else [path]


def provenance(found: EnvironmentLocation, environment: EnvironmentProtocol) -> dict[str, Any]:
    """What identifies this version of the environment."""
    module = sys.modules.get(type(environment).__module__)
    files = source_files(found)
    return {
        "version": version_of(found) or get_version(environment),
        "content_hash": hash_files(files) if files else None,
        "class": f"{getattr(module, '__name__', '?')}.{type(environment).__name__}",
    }


def source_files(found: EnvironmentLocation) -> list[Path]:
    path = found.path or find_task_source(found)
    if path is None:
        point = plugins.find_entry_point(plugins.ENVIRONMENTS, found.env_id) if found.registered else None
        spec = importlib.util.find_spec(point.module if point else found.module)
        origin = spec.origin if spec else None
        if spec is None or origin is None:
            return []
        path = Path(origin).parent if spec.submodule_search_locations else Path(origin)
    if path.is_file():
        return [path, *task_files.find_environment_file(path)]
    rows = [file for file in task_files.files_in(path) if task_files.is_data(file)]
    return sorted([*rows, *(file for file in path.rglob("*.py") if is_own_file(file.relative_to(path)))])


def is_own_file(file: Path) -> bool:
    """Whether a file belongs to the environment, and was not installed or written beside it."""
    return not any(part == "outputs" or part.startswith(".") for part in file.parts)


def hash_files(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def version_of(found: EnvironmentLocation) -> str | None:
    point = plugins.find_entry_point(plugins.ENVIRONMENTS, found.env_id) if found.registered else None
    if point is not None:
        return point.dist.version if point.dist else None
    if found.path is not None and (declared := declared_version(found.path)) is not None:
        return declared
    distribution = distribution_of(found)
    return distribution.version if distribution else None


def declared_version(path: Path) -> str | None:
    """The version in the folder's own pyproject.toml, whatever is installed."""
    file = path / "pyproject.toml"
    if not file.is_file():
        return None
    try:
        version = read_pyproject(file).get("project", {}).get("version")
    except ConfigError:
        return None
    return version if isinstance(version, str) else None


def distribution_of(found: EnvironmentLocation) -> importlib.metadata.Distribution | None:
    """The installed package with the environment's name."""
    for name in (found.env_id, found.module, found.module.replace("_", "-")):
        try:
            return importlib.metadata.distribution(name.rpartition("/")[2])
        except (importlib.metadata.PackageNotFoundError, ValueError):
            continue
    return None


def module_name(env_id: str) -> str:
    return env_id.rpartition("/")[2].replace("-", "_")


def is_importable(module: str) -> bool:
    try:
        return module.isidentifier() and importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def local_names(env_dir: str) -> list[str]:
    folder = Path(env_dir)
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
