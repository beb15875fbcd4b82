"""Options that several commands take, and the question they ask before they destroy anything."""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import isfinite
from typing import Any, TypeVar

import click

from proctor.cli.views.escape import echo
from proctor.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])


class FiniteFloat(click.types.FloatParamType):
    """A number. Python reads "nan" and "inf" as numbers too, and nothing is ever below nan, so that a check
    against it would always pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        return require_finite(self, super().convert(value, param, ctx), param, ctx)


class FiniteRange(click.FloatRange):
    """A number within bounds, of which nan is outside."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        return require_finite(self, super().convert(value, param, ctx), param, ctx)


def require_finite(
    kind: click.ParamType[Any], number: float, param: click.Parameter | None, ctx: click.Context | None
) -> float:
    if not isfinite(number):
        kind.fail(f"{number} is not a finite number.", param, ctx)
    return number


finite_float = FiniteFloat()
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
level_option = click.option(
    "--level",
    type=FiniteRange(0.5, 0.9999),
    default=0.95,
    show_default=True,
    help="Confidence level of intervals.",
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
env_dir_option = click.option(
    "-p",
    "--path",
    "--env-dir-path",
    "env_dir",
    default="./environments",
    show_default=True,
    help="Folder of local environments.",
)
dir_option = click.option(
    "--dir",
    "dirs",
    multiple=True,
    metavar="DIR",
    help="Look in this folder instead: one that you passed to -o, or a part of it. May be repeated.",
)


def limit_option(default: int, flag: str = "-n") -> Callable[[F], F]:
    return click.option(
        flag,
        "most",
        type=click.IntRange(min=-1),
        default=default,
        show_default=True,
        help="Show this many; -1 shows all.",
    )


def confirm(question: str, yes: bool) -> bool:
    """Ask before acting; without a terminal and without an answer on stdin, fail."""
    if yes:
        return True
    try:
        agreed = click.confirm(question, err=True)
    except (click.Abort, OSError) as error:
        if sys.stdin.isatty():
            raise
        raise ConfigError("No terminal to confirm on; pass --yes.") from error
    if not agreed:
        echo("Nothing was changed.", err=True)
    return agreed


def confirm_deletion(what: str, yes: bool) -> bool:
    """Ask before deleting; a pipe cannot agree to it, only --yes can."""
    if not yes and not sys.stdin.isatty():
        raise ConfigError(f"This would delete {what}; add --yes if that is what you want.")
    return confirm(f"Delete {what}?", yes)
