"""How often a generator function yields, read from its source.

Where every way through it yields equally often, it is known beforehand which yield is the last. Knows
nothing of what is yielded.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

MANY = 100
"""Counted no further: whoever yields so often does it in a loop."""

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
BRANCHES = (ast.If, ast.Try, ast.TryStar, ast.Match)


class Ways(NamedTuple):
    """How often each way through a piece of code yields, by whether the function goes on afterwards."""

    on: frozenset[int] = frozenset({0})
    out: frozenset[int] = frozenset()


NONE: frozenset[int] = frozenset()


def yields_of(function: Callable[..., Any]) -> int | None:
    """How often it yields, or None if that depends, or the source is not at hand."""
    if hasattr(function, "__wrapped__"):  # what a decorator does with it stands elsewhere
        return None
    try:
        source = textwrap.dedent(inspect.getsource(function))
        definition = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(definition, ast.AsyncFunctionDef):
        return None
    try:
        ways = through(definition.body)
    except UncountedError:
        return None
    counts = ways.on | ways.out
    return next(iter(counts)) if len(counts) == 1 else None


class UncountedError(Exception):
    """A loop yields, or so many ways lead through that nobody counts them."""


def through(block: Iterable[ast.stmt]) -> Ways:
    on, out = frozenset({0}), NONE
    for statement in block:
        ways = through_one(statement)
        out |= added(on, ways.out)
        on = added(on, ways.on)
    return Ways(on, out)


def through_one(statement: ast.stmt) -> Ways:
    if isinstance(statement, ast.Return):
        return Ways(NONE, frozenset({plain_yields(statement)}))
    if isinstance(statement, (ast.Raise, ast.Break, ast.Continue)):
        return Ways(NONE) if isinstance(statement, ast.Raise) else Ways()
    if isinstance(statement, LOOPS):
        if plain_yields(statement):
            raise UncountedError
        return Ways()
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return through(statement.body)
    if isinstance(statement, BRANCHES):
        return through_branches(statement)
    return Ways(frozenset({plain_yields(statement)}))


def through_branches(statement: ast.stmt) -> Ways:
    if isinstance(statement, ast.If):
        return either(through(statement.body), through(statement.orelse))
    if isinstance(statement, ast.Match):
        unmatched = [] if catches_all(statement.cases[-1]) else [Ways()]
        return either(*(through(case.body) for case in statement.cases), *unmatched)
    assert isinstance(statement, (ast.Try, ast.TryStar))
    if any(plain_yields(handler) for handler in statement.handlers):
        raise UncountedError  # where in the body it left off is anybody's guess
    tried = through([*statement.body, *statement.orelse])
    last = through(statement.finalbody)
    return Ways(added(tried.on, last.on), added(tried.out, last.on) | added(tried.on, last.out))


def catches_all(case: ast.match_case) -> bool:
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def either(*ways: Ways) -> Ways:
    return Ways(
        frozenset().union(*(each.on for each in ways)), frozenset().union(*(each.out for each in ways))
    )


def added(first: frozenset[int], second: frozenset[int]) -> frozenset[int]:
    sums = frozenset(one + other for one in first for other in second)
    if sums and max(sums) > MANY:
        raise UncountedError
    return sums


def plain_yields(node: ast.AST) -> int:
    """Yields of the function itself in a node, however deep."""
    if isinstance(node, SCOPES):
        return 0
    return sum(isinstance(part, ast.Yield) for part in own_parts(node))


def own_parts(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all in it, but not what functions and classes within it do."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, SCOPES):
            yield from own_parts(child)
