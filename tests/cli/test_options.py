"""What holds for the options of every command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import click
import pytest

from proctor.cli.app import proctor

NUMBERS = ("nan", "inf", "-inf", "1e400")


def list_commands(group: click.Group, words: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        yield " ".join((*words, name)), command
        if isinstance(command, click.Group):
            yield from list_commands(command, (*words, name))


COMMANDS = dict(list_commands(proctor, ("proctor",)))


@pytest.mark.parametrize("name", COMMANDS)
def test_no_number_may_be_nan_or_infinite(name: str) -> None:
    floats = [each for each in COMMANDS[name].params if isinstance(each.type, click.types.FloatParamType)]
    for param in floats:
        for word in NUMBERS:
            with pytest.raises(click.BadParameter):
                param.type.convert(word, param, None)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_flag_means_one_thing(name: str) -> None:
    flags = Counter(flag for param in COMMANDS[name].params for flag in param.opts)

    assert [flag for flag, count in flags.items() if count > 1] == []
