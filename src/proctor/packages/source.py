"""What an environment's source states about itself, read without running it.

Knows Python's syntax. Knows nothing of datasets, models or how packages are found.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Literal

import msgspec

LOADER = "load_environment"

Loader = Literal["defined", "imported", "missing"]


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One argument of load_environment()."""

    name: str
    line: int
    type: str | None = None
    default: str | None = None
    """As written in the source; None if it has no default."""


class EnvironmentSource(msgspec.Struct, frozen=True, kw_only=True):
    """What one file states about its environment."""

    file: Path
    description: str = ""
    """First line of the module's docstring, or else of load_environment()."""
    loader: Loader = "missing"
    arguments: tuple[Argument, ...] = ()
    takes_any: bool = False
    """load_environment() accepts arguments it does not name."""
    fault: str = ""
    """Why the file cannot be parsed, if so."""
    fault_line: int = 1


def read_source(file: Path, follow: bool = True) -> EnvironmentSource:
    """Read a file; if it only imports its loader, `follow` it to the file that defines it."""
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        return EnvironmentSource(
            file=file, fault=f"{type(error).__name__}: {error.msg}", fault_line=error.lineno or 1
        )
    except (OSError, ValueError, RecursionError) as error:
        return EnvironmentSource(file=file, fault=f"{type(error).__name__}: {error}")
    loader = find_loader(tree)
    description = first_line(tree) or (first_line(loader) if loader else "")
    if loader is None:
        return follow_import(file, tree, description, follow)
    return EnvironmentSource(
        file=file,
        description=description,
        loader="defined",
        arguments=tuple(arguments_of(loader)),
        takes_any=loader.args.kwarg is not None,
    )


Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_loader(tree: ast.Module) -> Function | None:
    """The definition in effect after the module has run: the last one at its top level."""
    found = [
        node
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == LOADER
    ]
    return found[-1] if found else None


def follow_import(file: Path, tree: ast.Module, description: str, follow: bool) -> EnvironmentSource:
    """Read the file beside `__init__.py` that defines the loader, as packages often have."""
    origin = next((home for node in ast.walk(tree) if (home := origin_of_loader(node)) is not None), None)
    if origin is None:
        return EnvironmentSource(file=file, description=description)
    neighbor = file.parent / f"{origin.rpartition('.')[2]}.py"
    if follow and origin and neighbor.is_file():
        behind = read_source(neighbor, follow=False)
        if behind.loader != "missing":
            return msgspec.structs.replace(behind, description=description or behind.description)
    return EnvironmentSource(file=file, description=description, loader="imported", takes_any=True)


def origin_of_loader(node: ast.AST) -> str | None:
    """The module a statement imports load_environment from; "" if it assigns it, None if neither."""
    if isinstance(node, ast.ImportFrom) and any((name.asname or name.name) == LOADER for name in node.names):
        return node.module or ""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return "" if any(isinstance(target, ast.Name) and target.id == LOADER for target in targets) else None


def arguments_of(loader: Function) -> list[Argument]:
    given = loader.args
    positional = [*given.posonlyargs, *given.args]
    missing = len(positional) - len(given.defaults)
    pairs: list[tuple[ast.arg, ast.expr | None]] = [
        *zip(positional, [*[None] * missing, *given.defaults], strict=True),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    return [
        Argument(
            name=argument.arg,
            line=argument.lineno,
            type=None if argument.annotation is None else ast.unparse(argument.annotation),
            default=None if default is None else ast.unparse(default),
        )
        for argument, default in pairs
    ]


def first_line(node: ast.Module | Function) -> str:
    text = ast.get_docstring(node) or ""
    return text.strip().partition("\n")[0].strip()
