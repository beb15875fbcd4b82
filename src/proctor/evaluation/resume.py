"""Where a run is stored: in a folder of its own, or in that of the unfinished run it resumes.

Knows nothing of engines or terminals.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from proctor.config.schema import LATEST
from proctor.errors import ConfigError, Failure, StoreError
from proctor.evaluation.prepare import Prepared
from proctor.report.lines import AttemptLine, RolloutLine
from proctor.rollout import Attempt
from proctor.store import metadata
from proctor.store.folder import METADATA, RESULTS, RunFolder, StoredRollouts, read_metadata
from proctor.store.locate import (
    folder_of_runs,
    journal_base,
    keep_private,
    list_newest_first,
    prune_journals,
    remember_base,
    saved_base,
)
from proctor.store.resume_rules import ACCEPTABLE, find_differences, is_unfinished
from proctor.support.logs import log
from proctor.task import Task

NEWEST = "newest"
"""Like LATEST, finished or not: of several evaluations, finished ones need not run again."""
FAILED = "failed rollouts"
"""Like NEWEST, but only what failed is played, and nothing that was never started."""
ARCHIVE = "archive"


def choose_new_folder(prepared: Prepared, run_id: str) -> Path:
    """Where a new run is stored: with the results or, unless it is to be saved, among the journals."""
    saved, journal = candidate_folders(prepared)
    if is_saved(prepared):
        if prepared.config.output_dir is not None:
            remember_base(Path(prepared.config.output_dir))
        return saved / run_id
    keep_private(journal_base())
    prune_journals(journal_base())
    return journal / run_id


def is_saved(prepared: Prepared) -> bool:
    return prepared.config.save_results or prepared.config.output_dir is not None


def folder_to_resume(
    prepared: Prepared, resume: str, planned: int | None, accepted: Collection[str] = ()
) -> tuple[Path, dict[str, Any]] | None:
    """The run to resume and its metadata; None if no run matches. `accepted` settings may differ."""
    current = metadata.run_identity(prepared.config, prepared.endpoint)
    if resume not in (LATEST, NEWEST, FAILED):
        return Path(resume), read_named_run(Path(resume), current, accepted)
    for path in list_newest_first(*candidate_folders(prepared)):
        try:
            stored = read_metadata(path)
        except StoreError:
            continue
        is_resumable = resume in (NEWEST, FAILED) or is_unfinished(stored, current, planned)
        if is_resumable and not is_rescored(stored) and not find_differences(stored, current, accepted):
            if not (path / RESULTS).exists():
                log.warning("%s", without_results(path))
                continue
            return move_to_saved(path, prepared), stored
    if resume == FAILED:
        raise ConfigError(f"No earlier run of {prepared.name} has these settings; leave out --retry-failed.")
    log.warning("No unfinished run of %s has these settings; starting a new one.", prepared.name)
    return None


def archive_runs(prepared: Prepared) -> Path | None:
    """Move all saved runs like this one out of the way; None if there are none. Nothing is deleted."""
    saved, _ = candidate_folders(prepared)
    runs = list_newest_first(saved)
    if not runs:
        return None
    archive = saved.parents[1] / ARCHIVE / saved.name
    for path in runs:
        RunFolder(path).close()  # refuses while another process is writing to it
    try:
        archive.mkdir(parents=True, exist_ok=True)
        for path in runs:
            shutil.move(path, archive / path.name)
    except OSError as error:
        raise StoreError(f"Cannot move runs to {archive}: {error.strerror or error}.") from error
    return archive


def move_to_saved(path: Path, prepared: Prepared) -> Path:
    """Move a journaled run that is to be saved from now on to the saved results."""
    saved, journal = candidate_folders(prepared)
    if path.parent != journal or not is_saved(prepared):
        return path
    RunFolder(path).close()  # refuses while another process is writing to it
    try:
        saved.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(path, saved / path.name))
    except OSError as error:
        raise StoreError(f"Cannot move {path} to {saved}: {error.strerror or error}.") from error


def without_results(path: Path) -> str:
    return f"{path} has {METADATA} but no {RESULTS}: its finished rollouts are gone."


def read_named_run(path: Path, current: Mapping[str, Any], accepted: Collection[str] = ()) -> dict[str, Any]:
    try:
        stored = read_metadata(path)
    except StoreError as error:
        raise ConfigError(f"{error} Give --resume the folder of a run.") from error
    if not (path / RESULTS).exists():
        raise ConfigError(f"{without_results(path)} Put the file back, or start a new run without --resume.")
    if is_rescored(stored):
        raise ConfigError(
            f"{path} was scored from the record of another run and has nothing to play; score it again with: "
            f"proctor eval rescore {stored['origin']['run_id']}"
        )
    changed = find_differences(stored, current, accepted)
    if changed:
        next_step = suggest_accepting(stored, current)
        raise ConfigError(f"{path} cannot be resumed: {'; '.join(changed)}.{next_step}")
    return stored


def is_rescored(stored: Mapping[str, Any]) -> bool:
    return (stored.get("origin") or {}).get("kind") == "rescore"


def suggest_accepting(stored: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    """How to resume all the same, if nothing changed but what may be accepted."""
    if find_differences(stored, current, ACCEPTABLE):
        return ""
    return " If it is the same server at another address, add --accept-changed api_base_url."


class TakenOver(msgspec.Struct, frozen=True, kw_only=True):
    """What a resumed run had when it was resumed."""

    finished: int
    """Rollouts that count and are not played again."""
    failed: int
    """Rollouts that failed before and are played again."""
    planned: int | None
    accepted_changes: tuple[Mapping[str, Any], ...] = ()

    def describe(self) -> str:
        rollouts = "1 finished rollout" if self.finished == 1 else f"{self.finished:,} finished rollouts"
        parts = [f"{rollouts} taken over"]
        if self.failed:
            parts.append(f"{self.failed:,} failed and played again")
        if self.planned is not None:
            left = self.planned - self.finished - self.failed
            parts.append(f"{left:,} not played before" if left or self.failed else "nothing left to play")
        return ", ".join(parts)


def warn_of_lost_rows(path: Path, counted: Any, found: int) -> None:
    """Say that the file holds fewer finished rollouts than were counted when it was written."""
    if isinstance(counted, int) and found < counted:
        log.warning(
            "%s counts %s finished rollouts, but %s holds %s; the others are played again.",
            *(path / METADATA, f"{counted:,}", RESULTS, f"{found:,}"),
        )


def candidate_folders(prepared: Prepared) -> tuple[Path, Path]:
    """Where runs like this one are saved, and where they are journaled."""
    config = prepared.config
    saved = saved_base(config.output_dir, config.env_dir_path, prepared.module)
    names = (prepared.name, prepared.endpoint.model, config.label)
    return folder_of_runs(saved, *names), folder_of_runs(journal_base(), *names)


def give_distinct_label(prepared: Prepared, taken: AbstractSet[Path]) -> Prepared:
    """The same, with a number if its runs would lie among those of another evaluation.

    Two spellings of an environment, or an alias and its model, turn out to be one only here.
    """
    label = prepared.config.label
    for number in itertools.count(2):
        if evaluation_folder(prepared) not in taken:
            break
        config = replace(prepared.config, label=f"{label} #{number}".strip())
        origins = {**prepared.origins, "label": "made, because another is called the same"}
        prepared = replace(prepared, config=config, origins=origins)
    return prepared


def evaluation_folder(prepared: Prepared) -> Path:
    """What tells its runs from those of other evaluations."""
    return candidate_folders(prepared)[1]


def warn_of_changes(prepared: Prepared, stored: Mapping[str, Any]) -> None:
    then = (stored.get("environment") or {}).get("content_hash")
    now = prepared.provenance.get("content_hash")
    if then and now and then != now:
        log.warning(
            "The code of %s has changed since this run was started; finished rollouts keep their scores.",
            prepared.config.env_id,
        )


def warn_of_timeout_change(prepared: Prepared, stored: Mapping[str, Any], timed_out: int) -> None:
    then = (stored.get("config") or {}).get("timeout")
    if timed_out and then is not None and then != prepared.config.timeout:
        log.warning(
            "--timeout was %g and is now %g; %d rollouts that ran out of time keep their scores. Start a new "
            "run to play them again.",
            then,
            prepared.config.timeout,
            timed_out,
        )


def list_earlier_attempts(line: RolloutLine) -> tuple[Attempt, ...]:
    """Every failed attempt that a stored rollout records, the one it ended with last."""
    assert line.error is not None
    last = AttemptLine(line.outcome, line.error, line.timing.start_time, line.timing.total, line.token_usage)
    return tuple(
        Attempt(
            each.outcome,
            Failure(each.error.error, each.error.message, each.error.phase),
            each.start,
            each.seconds,
            each.usage,
        )
        for each in (*line.earlier_attempts, last)
    )


def build_task_check(stored: StoredRollouts, path: Path) -> Callable[[Task], None]:
    """Refuses a task whose content is not the one the stored rollouts were played on."""
    hashes = {key[0]: task_hash for key, task_hash in stored.settled.items()}

    def check(task: Task) -> None:
        known = hashes.get(task.id)
        if known is not None and known != task.hash:
            raise ConfigError(
                f"{path} cannot be resumed: task {task.id!r} has changed since; start a new run."
            )

    return check
