"""Names in an environment's source: what it takes from a framework, without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


def find_names(file: Path, package: str) -> Iterator[str]:
    """The names that a file takes from a package: `from package… import name`, `package.name`."""
    tree = parse_file(file)
    aliases: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [each for each in node.names if each.name.partition(".")[0] == package]
            aliases.update(each.asname or each.name.partition(".")[0] for each in names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == package:
            yield from (each.name for each in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            yield node.attr


def find_calls(file: Path) -> Iterator[str]:
    """The names of methods that a file calls, and of keywords that it passes."""
    for node in ast.walk(parse_file(file)):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield node.func.attr
            yield from (each.arg for each in node.keywords if each.arg)


def parse_file(file: Path) -> ast.Module:
    """Its syntax tree; an empty one if it cannot be parsed, which importing it will explain better."""
    try:
        return ast.parse(file.read_bytes(), str(file))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ast.Module(body=[], type_ignores=[])
