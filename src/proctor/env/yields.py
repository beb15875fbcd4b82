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
"""Counting stops here: that many yields come from a loop."""

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
BRANCHES = (ast.If, ast.Try, ast.TryStar, ast.Match)


class YieldCounts(NamedTuple):
    """How often each path through a piece of code yields, by whether the function continues afterwards."""

    on: frozenset[int] = frozenset({0})
    out: frozenset[int] = frozenset()


NONE: frozenset[int] = frozenset()


def count_yields(function: Callable[..., Any]) -> int | None:
    """How often it yields, or None if that varies or the source is not available."""
    if hasattr(function, "__wrapped__"):  # what its decorator does is not in this source
        return None
    try:
        source = textwrap.dedent(inspect.getsource(function))
        definition = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(definition, ast.AsyncFunctionDef):
        return None
    try:
        ways = count_block(definition.body)
    except UncountedError:
        return None
    counts = ways.on | ways.out
    return next(iter(counts)) if len(counts) == 1 else None


class UncountedError(Exception):
    """A loop yields, or there are too many paths to count."""


def count_block(block: Iterable[ast.stmt]) -> YieldCounts:
    on, out = frozenset({0}), NONE
    for statement in block:
        ways = count_statement(statement)
        out |= add_counts(on, ways.out)
        on = add_counts(on, ways.on)
    return YieldCounts(on, out)


def count_statement(statement: ast.stmt) -> YieldCounts:
    if isinstance(statement, ast.Return):
        return YieldCounts(NONE, frozenset({count_own_yields(statement)}))
    if isinstance(statement, (ast.Raise, ast.Break, ast.Continue)):
        return YieldCounts(NONE) if isinstance(statement, ast.Raise) else YieldCounts()
    if isinstance(statement, LOOPS):
        if count_own_yields(statement):
            raise UncountedError
        return YieldCounts()
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return count_block(statement.body)
    if isinstance(statement, BRANCHES):
        return count_branches(statement)
    return YieldCounts(frozenset({count_own_yields(statement)}))


def count_branches(statement: ast.stmt) -> YieldCounts:
    if isinstance(statement, ast.If):
        return merge_branches(count_block(statement.body), count_block(statement.orelse))
    if isinstance(statement, ast.Match):
        unmatched = [] if catches_all(statement.cases[-1]) else [YieldCounts()]
        return merge_branches(*(count_block(case.body) for case in statement.cases), *unmatched)
    assert isinstance(statement, (ast.Try, ast.TryStar))
    if any(count_own_yields(handler) for handler in statement.handlers):
        raise UncountedError  # where the body was interrupted is unknown
    tried = count_block([*statement.body, *statement.orelse])
    last = count_block(statement.finalbody)
    return YieldCounts(
        add_counts(tried.on, last.on), add_counts(tried.out, last.on) | add_counts(tried.on, last.out)
    )


def catches_all(case: ast.match_case) -> bool:
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def merge_branches(*ways: YieldCounts) -> YieldCounts:
    return YieldCounts(
        frozenset().union(*(each.on for each in ways)), frozenset().union(*(each.out for each in ways))
    )


def add_counts(first: frozenset[int], second: frozenset[int]) -> frozenset[int]:
    sums = frozenset(one + other for one in first for other in second)
    if sums and max(sums) > MANY:
        raise UncountedError
    return sums


def count_own_yields(node: ast.AST) -> int:
    """Count the yields of the function itself within a node, at any depth."""
    if isinstance(node, SCOPES):
        return 0
    return sum(isinstance(part, ast.Yield) for part in walk_own_nodes(node))


def walk_own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A node and everything in it, except nested functions and classes."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, SCOPES):
            yield from walk_own_nodes(child)
