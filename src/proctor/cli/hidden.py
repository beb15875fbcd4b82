"""Read secrets from a prompt without echo, from stdin, a file or a variable; never from argv, which every
process on the machine can read and the shell's history keeps. Write them to private files.

Knows nothing of what the secrets are for.
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
    """The value without its trailing newline; prompts if stdin is a terminal."""
    if file is not None and variable is not None:
        raise ConfigError(f"{is_file_option} and --from-env both name a source of the {what}; pass only one.")
    if variable is not None:
        if variable not in environ:
            raise ConfigError(f"{variable} is not set, so the {what} cannot be read from it.")
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
        with open(file, "rb") as opened:  # noqa: PTH123 - /dev/fd/N of a shell's <(…) is not an ordinary path
            return decode_utf8(opened.read(), file)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}.") from error


@contextmanager
def create_private_file(file: str) -> Iterator[TextIO]:
    """A new file that only its owner can read, created before its content; removed on failure."""
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise ConfigError(f"{file} already exists; name a new file.") from error
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
        raise ConfigError(f"{where} is not UTF-8 text; encode it first, for example as base64.") from error
