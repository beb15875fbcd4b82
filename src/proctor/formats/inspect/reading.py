"""Inspect logs as runs: `.eval` archives and `.json` files.

A log that was not finished has no header; what its journal holds is read. Knows nothing of run folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from proctor.formats.foreign_run import ForeignRun, LeftOut, Row, is_number, parse_time
from proctor.formats.inspect.archive import open_archive
from proctor.formats.inspect.samples import convert_sample
from proctor.formats.inspect.scores import choose_reward_name, flatten_scores
from proctor.formats.sources import (
    SourceFile,
    UnusableSourceError,
    as_object,
    get_list,
    get_object,
    get_text,
    read_document,
)
from proctor.run import EndedStatus

TOOL = "inspect"
HEADER = "header.json"
START = "_journal/start.json"
SAMPLES = "samples/"
STATUSES: dict[str, EndedStatus] = {"success": "finished", "error": "failed", "cancelled": "stopped"}


def recognizes_file(source: SourceFile) -> bool:
    if source.is_zip:
        if source.path.suffix.lower() == ".eval":
            return True
        with suppress(UnusableSourceError), open_archive(source.path) as archive:
            return HEADER in archive.names or START in archive.names
        return False
    document = source.document
    return document is not None and "eval" in document and bool(get_text(document, "eval", "task"))


def read(path: Path, reward: str | None) -> Iterable[ForeignRun]:
    """The run of one log; `reward` names the score that counts."""
    if SourceFile(path).is_zip:
        yield read_archive(path, reward)
    else:
        yield read_json(path, reward)


def read_archive(path: Path, reward: str | None) -> ForeignRun:
    with open_archive(path) as archive:
        names = archive.names
        name = HEADER if HEADER in names else START
        if name not in names:
            raise UnusableSourceError(f"{path} has neither {HEADER} nor {START}; it is not an Inspect log.")
        header = archive.read(name)
        samples = [each for each in names if each.startswith(SAMPLES)]
        known: set[str] = set()
        if not get_list(header, "results", "scores") and samples:
            known = set(flatten_scores(get_object(archive.read(samples[0]), "scores")))
    chosen = choose_score(header, reward, known)

    def rows() -> Iterator[Row | LeftOut]:
        with open_archive(path) as archive:
            for member in samples:
                try:
                    sample: Any = archive.read(member)
                except UnusableSourceError as error:
                    yield LeftOut(member, str(error))
                else:
                    yield convert_or_leave_out(sample, member, get_text(header, "eval", "model"), chosen)

    return build_run(path, header, rows)


def read_json(path: Path, reward: str | None) -> ForeignRun:
    document = read_document(path)
    samples = get_list(document, "samples")
    first = get_object(samples[0], "scores") if samples else {}
    chosen = choose_score(document, reward, set(flatten_scores(first)))

    def rows() -> Iterator[Row | LeftOut]:
        for number, sample in enumerate(samples):
            yield convert_or_leave_out(
                sample, f"sample {number + 1}", get_text(document, "eval", "model"), chosen
            )

    return build_run(path, document, rows)


def convert_or_leave_out(sample: Any, where: str, model: str, reward_name: str) -> Row | LeftOut:
    fields = as_object(sample)
    if fields is None or "id" not in fields:
        return LeftOut(where, "not a sample: it has no id")
    try:
        return convert_sample(fields, model, reward_name)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        return LeftOut(where, f"not a sample as Inspect writes it ({type(error).__name__}: {error})")


def choose_score(header: Mapping[str, Any], wanted: str | None, known: set[str]) -> str:
    headline = get_object(header, "results", "headline") or get_object(header, "eval", "headline_metric")
    score, scorer = get_text(headline, "score"), get_text(headline, "scorer")
    names = known | list_scores(header)
    leading = score if score in names else f"{scorer}.{score}"
    scorers = [get_text(each, "name") for each in get_list(header, "eval", "scorers")]
    return choose_reward_name(leading, scorers, wanted, names)


def list_scores(header: Mapping[str, Any]) -> set[str]:
    """The names of the scores that the header's results list, as a row names them."""
    names = set()
    for score in get_list(header, "results", "scores"):
        scorer, name = get_text(score, "scorer"), get_text(score, "name")
        names.add(name if scorer in ("", name) else f"{scorer}.{name}")
    return names


def build_run(path: Path, header: Mapping[str, Any], rows: Any) -> ForeignRun:
    spec, stats = get_object(header, "eval"), get_object(header, "stats")
    started, ended = parse_time(stats.get("started_at")), parse_time(stats.get("completed_at"))
    config, dataset = get_object(spec, "config"), get_object(spec, "dataset")
    epochs = config.get("epochs")
    samples = len(get_list(dataset, "sample_ids")) or dataset.get("samples")
    planned = int(samples * epochs) if is_number(samples) and is_number(epochs) else None
    sampling = {name: value for name, value in get_object(spec, "model_generate_config").items() if value}
    return ForeignRun(
        tool=TOOL,
        source=path,
        id=get_text(spec, "eval_id") or get_text(spec, "task_id"),
        tool_version=get_text(spec, "packages", "inspect_ai"),
        env_id=get_text(spec, "task") or path.stem,
        model=get_text(spec, "model"),
        rows=rows,
        status=STATUSES.get(get_text(header, "status"), "stopped"),
        note=get_text(header, "error", "message"),
        started_at=started if started is not None else parse_time(spec.get("created")),
        seconds=ended - started if started is not None and ended is not None else None,
        planned=planned,
        rollouts_per_example=int(epochs) if is_number(epochs) else None,
        env_args=get_object(spec, "task_args"),
        sampling_args=sampling,
        agent=get_text(spec, "solver"),
        base_url=get_text(spec, "model_base_url"),
        details={
            name: spec[name]
            for name in ("task_version", "task_file", "dataset", "revision", "tags")
            if spec.get(name)
        },
    )
