"""Read what nobody should see: from a prompt without echo, from stdin, a file or a variable; never from argv,
where every process of the machine could read it, and the shell would remember it. Write it likewise.

Knows nothing of what it is for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

import click

from proctor.errors import ConfigError

STDIN = "-"


def read_hidden(
    what: str,
    *,
    file: str | None = None,
    variable: str | None = None,
    environ: Mapping[str, str],
    is_file_option: str = "--from-file",
) -> str:
    """The value, without the end of its last line; asked for where a terminal is there to ask at."""
    if file is not None and variable is not None:
        raise ConfigError(f"{is_file_option} and --from-env both say where the {what} is; give one of them.")
    if variable is not None:
        if variable not in environ:
            raise ConfigError(f"{variable} is not set, and the {what} was to be in it.")
        value = environ[variable]
    elif file not in (None, STDIN):
        value = read_secret_file(str(file))
    elif file is None and sys.stdin.isatty():
        value = str(click.prompt(what[:1].upper() + what[1:], hide_input=True, err=True))
    else:
        value = decode_utf8(sys.stdin.buffer.read(), "stdin")
    value = value.removesuffix("\n").removesuffix("\r")
    if not value:
        raise ConfigError(
            f"The {what} is empty; type it, pipe it to stdin, or name a file with {is_file_option}."
        )
    return value


def read_secret_file(file: str) -> str:
    try:
        with open(file, "rb") as opened:  # noqa: PTH123 - /dev/fd/N of a shell's <(…) is no ordinary path
            return decode_utf8(opened.read(), file)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}.") from error


@contextmanager
def create_private_file(file: str) -> Iterator[TextIO]:
    """A new file that only its owner can read, there before its content is made; removed if that fails."""
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise ConfigError(f"{file} is there already; name a file that is not.") from error
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}.") from error
    with os.fdopen(opened, "w") as out:
        try:
            yield out
        except BaseException:
            os.unlink(file)  # noqa: PTH108 - as it was opened
            raise


def decode_utf8(content: bytes, where: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where} holds no UTF-8 text; encode it first, say as base64.") from error
