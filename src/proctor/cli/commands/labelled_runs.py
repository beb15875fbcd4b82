"""A run to label, here or on the server: its folder, who labels, and where labels go.

A run on the server is downloaded, with its labels in the place where a run here has them. Knows nothing of
terminals.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from proctor.api.labels import NewLabel, RunLabel
from proctor.api.people import Whoami
from proctor.cli.commands.hosted_export import download_run
from proctor.cli.commands.server_calls import call_server
from proctor.client import labels as client
from proctor.client.runs import is_run_id
from proctor.errors import ConfigError
from proctor.store.index import find_run, search_folders
from proctor.store.labels import LONGEST_NAME, Label, append_labels


class LabelledRun(msgspec.Struct, frozen=True):
    """A run that is being labelled."""

    name: str
    folder: Path
    person: str
    save: Callable[[Sequence[Label]], None]
    is_hosted: bool = False
    """On a server, where you label only as yourself."""


@contextmanager
def open_labelled_run(word: str, person: str | None, dirs: Sequence[str]) -> Iterator[LabelledRun]:
    if not is_run_id(word):
        folder = find_run(word, search_folders(dirs))
        name = check_person(person or default_person())
        yield LabelledRun(folder.name, folder, name, lambda labels: append_labels(folder, labels))
        return
    if person is not None:
        raise ConfigError("On a server you label as the user you are logged in as; leave out --as.")
    with download_labelled_run(word) as folder:
        me = call_server(lambda server: server.get("/whoami", Whoami)).user.name
        yield LabelledRun(word, folder, me, lambda labels: send_labels(word, labels), is_hosted=True)


@contextmanager
def download_labelled_run(run_id: str) -> Iterator[Path]:
    """The folder of a run on the server, with its labels."""
    with download_run(run_id) as folder:
        given = call_server(lambda server: client.read_labels(server, run_id))
        append_labels(folder, map(convert_label, given))
        yield folder


def convert_label(label: RunLabel) -> Label:
    return msgspec.convert(label, Label, from_attributes=True)


def send_labels(run_id: str, labels: Sequence[Label]) -> None:
    new = [
        NewLabel(example_id=label.example_id, rollout=label.rollout, score=label.score, note=label.note)
        for label in labels
    ]
    call_server(lambda server: client.give_labels(server, run_id, new))


def default_person() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:
        raise ConfigError("Your login name is not known; pass --as NAME.") from error


def check_person(name: str) -> str:
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise ConfigError(f"--as takes a name of 1 to {LONGEST_NAME} printable characters.")
    return name.strip()
