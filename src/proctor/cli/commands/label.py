"""`proctor eval label`: people score rollouts, in the terminal or from a file."""

from __future__ import annotations

import csv
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.commands.rerun import run_argument
from proctor.cli.commands.shared_options import dir_option
from proctor.cli.views.escape import echo
from proctor.cli.views.formatting import format_quantity
from proctor.errors import ConfigError, StoreError
from proctor.rollout import is_score

if TYPE_CHECKING:
    from proctor.cli.commands.labelled_runs import LabelledRun
    from proctor.rollout import RolloutKey
    from proctor.store.labels import Label
    from proctor.store.recorded import StoredPlays

WORDS = {"y": 1.0, "yes": 1.0, "n": 0.0, "no": 0.0}
HELP = "a score, with a note after it if you like · s skip · b back · q quit"


@click.command("label", short_help="Give human scores to a run's rollouts.")
@run_argument
@click.option(
    "--as", "person", metavar="NAME", help="Who is labelling a local run. [default: your login name]"
)
@click.option(
    "--scores",
    "offered",
    default="0,1",
    show_default=True,
    metavar="LIST",
    help="Scores to choose from, on the judge's scale: 0,0.5,1, or a range such as 0..1.",
)
@click.option("-n", "most", type=click.IntRange(min=1), help="Stop after this many labels.")
@click.option(
    "--seed", type=int, default=0, help="Seed of the random order; use the same for everyone. [default: 0]"
)
@click.option("--hide-answer", is_flag=True, help="Do not show the dataset's answer.")
@click.option(
    "--from",
    "source",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take labels from a CSV file: example_id, rollout, score, and optionally person and note.",
)
@dir_option
def label_command(
    run: str,
    person: str | None,
    offered: str,
    most: int | None,
    seed: int,
    hide_answer: bool,
    source: Path | None,
    dirs: tuple[str, ...],
) -> None:
    """Score the rollouts of a run yourself, to see how far you can trust its judge.

    Rollouts come in a random order that is the same for everyone, without the model, the judge's score or
    anyone's label. Each label is saved at once, beside the results; the command continues where you stopped.
    RUN may be the whole id of a run on the server, where you label as yourself.
    `proctor eval agreement` then shows how far the judge agrees, and what people would have scored.

    \b
    proctor eval label latest
    proctor eval label latest --as maria --scores 0,0.5,1 -n 30
    proctor eval label latest --from labels.csv
    """
    from contextlib import closing

    from proctor.cli.commands.labelled_runs import open_labelled_run
    from proctor.store.folder import read_metadata
    from proctor.store.recorded import StoredPlays

    accept = parse_scores(offered)
    try:
        with (
            open_labelled_run(run, person, dirs) as labelled,
            closing(StoredPlays(labelled.folder, read_metadata(labelled.folder))) as plays,
        ):
            if source is not None:
                labels = read_label_file(source, labelled, plays)
                labelled.save(labels)
                echo(f"{format_quantity(len(labels), 'label')} of run {labelled.name} saved.", err=True)
                return
            LabelSession(labelled, plays, accept, seed, hide_answer).run(most)
    except StoreError as error:
        raise ConfigError(str(error)) from error


class AcceptedScores:
    """Which scores may be given."""

    def __init__(self, values: Sequence[float], is_range: bool) -> None:
        self.values = values
        self.is_range = is_range

    def __contains__(self, score: float) -> bool:
        if self.is_range:
            return self.values[0] <= score <= self.values[1]
        return score in self.values

    def __str__(self) -> str:
        joint = " to " if self.is_range else ", "
        return joint.join(f"{value:g}" for value in self.values)


def parse_scores(text: str) -> AcceptedScores:
    is_range = ".." in text
    try:
        values = [float(part) for part in text.split(".." if is_range else ",")]
    except ValueError as error:
        raise ConfigError(
            f"--scores takes numbers such as 0,0.5,1, or a range such as 0..1; got {text!r}."
        ) from error
    if len(set(values)) < 2 or not all(map(is_score, values)) or (is_range and len(values) != 2):
        raise ConfigError(f"--scores needs at least two different numbers; got {text!r}.")
    return AcceptedScores(sorted(set(values)), is_range)


class LabelSession:
    """One person at the terminal: shows a rollout, takes a score, saves it, goes to the next."""

    def __init__(
        self,
        labelled: LabelledRun,
        plays: StoredPlays,
        accepted: AcceptedScores,
        seed: int,
        hide_answer: bool,
    ) -> None:
        from proctor.store.labels import list_for_labelling, read_labels

        self.labelled, self.plays = labelled, plays
        self.accepted, self.hide_answer = accepted, hide_answer
        self.keys = list_for_labelling(plays, seed)
        if not self.keys:
            raise ConfigError(f"Run {labelled.name} has no scored rollouts to label.")
        self.done = {key for key in read_labels(labelled.folder).of(labelled.person) if key in set(self.keys)}
        self.given = 0

    def run(self, most: int | None) -> None:
        todo = [key for key in self.keys if key not in self.done]
        echo(f"{len(self.done):,} of {len(self.keys):,} labelled by {self.labelled.person}. {HELP}", err=True)
        index = 0
        while index < len(todo) and (most is None or self.given < most):
            step = self.ask(todo[index])
            if step is None:
                break
            index = max(0, index + step)
        left = len(self.keys) - len(self.done)
        echo(
            f"{format_quantity(self.given, 'label')} of run {self.labelled.name} saved; {left:,} left.",
            err=True,
        )

    def ask(self, key: RolloutKey) -> int | None:
        """Label one rollout: how far to move on, or None to stop."""
        self.show(key)
        while True:
            typed = self.read_answer(key)
            if typed is None or typed in ("q", "quit"):
                return None
            if typed in ("b", "back"):
                return -1
            if typed in ("s", "skip"):
                self.save(key, None, "")
                return 1
            first, _, note = typed.partition(" ")
            score = parse_score(first)
            if score is not None and score in self.accepted:
                self.save(key, score, note.strip())
                return 1
            echo(f"Scores are {self.accepted}. {HELP}", err=True)

    def read_answer(self, key: RolloutKey) -> str | None:
        """A line from the terminal or from stdin; None at its end."""
        position = f"{len(self.done - {key}) + 1:,}/{len(self.keys):,}"
        try:
            text: str = click.prompt(
                f"{position}  score ({self.accepted})", default="", show_default=False, err=True
            )
        except (click.Abort, EOFError):
            echo("", err=True)  # the line of the prompt is not ended
            return None
        return text.strip()

    def show(self, key: RolloutKey) -> None:
        from proctor.cli.views.labels import rollout_lines
        from proctor.cli.views.page import page_width, print_lines

        row = self.plays.read_row(key)
        print_lines(rollout_lines(row, page_width(), with_answer=not self.hide_answer))

    def save(self, key: RolloutKey, score: float | None, note: str) -> None:
        from proctor.store.labels import LONGEST_NOTE, Label

        label = Label(
            example_id=key[0],
            rollout=key[1],
            person=self.labelled.person,
            score=score,
            note=note[:LONGEST_NOTE],
            at=time.time(),
        )
        self.labelled.save([label])
        self.done.add(key)
        self.given += score is not None


def parse_score(word: str) -> float | None:
    if word.lower() in WORDS:
        return WORDS[word.lower()]
    try:
        score = float(word)
    except ValueError:
        return None
    return score if is_score(score) else None


# From a file


def read_label_file(path: Path, labelled: LabelledRun, plays: StoredPlays) -> list[Label]:
    """All labels of a file, or an error that names the first line that is wrong."""
    keys = {(str(task), number): (task, number) for task, number in plays.lines}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            missing = {"example_id", "rollout", "score"} - set(rows.fieldnames or ())
            if missing:
                raise ConfigError(f"{path} has no column {', '.join(sorted(missing))}.")
            return [
                read_label_row(row, f"{path}, line {rows.line_num}", labelled, keys)
                for row in rows
                if (row["score"] or "").strip()
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path} cannot be read as CSV: {error}.") from error


def read_label_row(
    row: Mapping[str, str | None],
    where: str,
    labelled: LabelledRun,
    keys: Mapping[tuple[str, int], RolloutKey],
) -> Label:
    from proctor.cli.commands.labelled_runs import check_person
    from proctor.store.labels import LONGEST_NOTE, Label

    task, number = (row["example_id"] or "").strip(), (row["rollout"] or "").strip()
    key = keys.get((task, int(number))) if number.isdecimal() else None
    if key is None:
        raise ConfigError(f"{where}: the run has no rollout {number or '?'} of task {task or '?'}.")
    score = parse_score((row["score"] or "").strip())
    if score is None:
        raise ConfigError(f"{where}: {row['score']!r} is not a score.")
    person = check_person(row.get("person") or labelled.person)
    if labelled.is_hosted and person != labelled.person:
        raise ConfigError(f"{where}: on a server you cannot label as {person}; have them do it.")
    return Label(
        example_id=key[0],
        rollout=key[1],
        person=person,
        score=score,
        note=(row.get("note") or "")[:LONGEST_NOTE],
        at=time.time(),
    )
