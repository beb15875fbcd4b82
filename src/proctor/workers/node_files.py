"""What a worker on another machine needs from this one: its environment, files, keys; and its new paths.

Knows settings and paths. Knows nothing of connections.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.config.endpoints import Endpoint
from proctor.config.providers import PROVIDERS
from proctor.errors import ConfigError
from proctor.packages.loading import EnvironmentLocation, find_installed_tasks
from proctor.workers.bundles import Bundle, list_named, pack_files, pack_source
from proctor.workers.frames import StartWorker, Unpacked


class BundledPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Paths of this machine and the bundle they travel in."""

    bundle: Bundle
    base: Path
    """What the bundle's paths start from."""
    holds: Sequence[Path]
    shown: Mapping[str, str] = {}
    """Paths in the bundle by the paths from the working directory where the worker sees them."""


class NodeFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that travels."""

    bundled: Sequence[BundledPaths]
    path: Path | None
    """What the environment is loaded by here, in the first bundle; None if nodes have it installed."""
    variables: Mapping[str, str]


def bundle_node_files(
    start: StartWorker, scratch: Path, *, files: Sequence[str] = (), variables: Sequence[str] = ()
) -> NodeFiles:
    """Pack what the nodes may not have. `files` and `variables` are sent in any case."""
    cwd = Path.cwd()
    bundled: list[BundledPaths] = []
    path: Path | None = None
    if not start.found.registered:
        root, path = locate(start.found)
        bundle = pack_source(root, scratch / "environment.tar.gz")
        shown = {str(root.relative_to(cwd)): root.name} if root.is_relative_to(cwd) else {}
        bundled.append(BundledPaths(bundle=bundle, base=root.parent, holds=[root], shown=shown))
    named = [*resolve_named(files), *find_paths(start.config.env_args)]
    inside = sorted({each for each in named if each.is_relative_to(cwd)})
    if inside:
        listed = sorted({file for each in inside for file in list_named(each)})
        bundle = pack_files(cwd, listed, scratch / "files.tar.gz")
        bundled.append(BundledPaths(bundle=bundle, base=cwd, holds=inside, shown={".": "."}))
    for number, each in enumerate(sorted({each for each in named if not each.is_relative_to(cwd)})):
        bundle = pack_files(each.parent, list_named(each), scratch / f"file-{number}.tar.gz")
        bundled.append(BundledPaths(bundle=bundle, base=each.parent, holds=[each]))
    return NodeFiles(bundled=bundled, path=path, variables=collect_variables(start.endpoint, variables))


def locate(found: EnvironmentLocation) -> tuple[Path, Path]:
    """The folder that holds all of an environment, and the path that it is loaded by."""
    path = found.path
    if path is not None:
        return (path, path) if path.is_dir() else (path.parent, path)
    tasks = find_installed_tasks(found.module)
    if tasks is not None:
        return tasks, tasks
    spec = importlib.util.find_spec(found.module)
    if spec is None or spec.origin is None:
        raise ConfigError(f"{found.env_id} has no files that could travel to the nodes.")
    file = Path(spec.origin)
    # A package is loaded from the folder that holds it.
    return (file.parent, file.parent.parent) if file.name == "__init__.py" else (file.parent, file)


def resolve_named(files: Sequence[str]) -> list[Path]:
    paths = [Path(name).expanduser().absolute() for name in files]
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise ConfigError(f"'files' in --on-args names {missing}, which does not exist.")
    return paths


def find_paths(value: Any) -> Iterator[Path]:
    """The files and folders that arguments name."""
    if isinstance(value, str) and 0 < len(value) < 4096 and "\0" not in value and "\n" not in value:
        path = Path(value).expanduser().absolute()
        if looks_like_path(value) and path.exists():
            yield path
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from find_paths(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from find_paths(each)


def looks_like_path(text: str) -> bool:
    """A value may happen to equal a folder's name; a path has a slash or a file's ending."""
    return "/" in text.rstrip("/") or bool(Path(text).suffix)


def collect_variables(endpoint: Endpoint, named: Sequence[str]) -> dict[str, str]:
    """Keys that model and judges may need, and variables that were requested by name."""
    missing = next((name for name in named if name not in os.environ), None)
    if missing is not None:
        raise ConfigError(f"'variables' in --on-args names {missing}, which is not set here.")
    known = [name for provider in PROVIDERS.values() for name in provider.key_vars]
    own = [each.key_var for each in (endpoint, *endpoint.replicas) if each.key_var]
    return {name: os.environ[name] for name in (*known, *own, *named) if name in os.environ}


def localize(start: StartWorker, node_files: NodeFiles, unpacked: Unpacked) -> StartWorker:
    """The same instructions with the paths of another machine."""

    def move(path: Path) -> Path:
        for each in node_files.bundled:
            if any(path.is_relative_to(held) for held in each.holds):
                return Path(unpacked.roots[each.bundle.digest]) / path.relative_to(each.base)
        return path

    def move_in(value: Any) -> Any:
        if isinstance(value, str) and next(find_paths(value), None) is not None:
            path = Path(value).expanduser()
            return value if not path.is_absolute() and ".." not in path.parts else str(move(path.absolute()))
        if isinstance(value, Mapping):
            return {name: move_in(each) for name, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [move_in(each) for each in value]
        return value

    found = start.found
    if node_files.path is not None:
        first = node_files.bundled[0]
        root = Path(unpacked.roots[first.bundle.digest])
        found = msgspec.structs.replace(found, path=root / node_files.path.relative_to(first.base))
    return msgspec.structs.replace(
        start,
        found=found,
        config=msgspec.structs.replace(start.config, env_args=move_in(start.config.env_args)),
        folder=unpacked.run_folder,
        sends_files=True,
    )
