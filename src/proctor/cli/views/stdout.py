"""Write JSON and bytes to stdout; a reader that closes the pipe early is not an error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from proctor.cli.views.escape import visible_json


def print_json(value: Any) -> None:
    """One indented document."""
    document = msgspec.json.format(msgspec.json.encode(value, enc_hook=str))
    write_stdout([visible_json(document.decode()).encode(), b"\n"])


def print_json_line(value: Any) -> None:
    """One document on one line, for a stream of them."""
    write_stdout([encode_json(value), b"\n"])


def encode_json(value: Any) -> bytes:
    """One line without anything that a terminal would obey."""
    return visible_json(msgspec.json.encode(value, enc_hook=str).decode()).encode()


def write_stdout(pieces: Iterable[bytes]) -> None:
    """Write everything, or as much as the reader wants."""
    with ignore_closed_pipe():
        sys.stdout.flush()
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


@contextmanager
def ignore_closed_pipe() -> Iterator[None]:
    """Drop the rest of the output when the reader has closed the pipe."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
