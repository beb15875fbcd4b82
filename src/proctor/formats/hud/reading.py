"""HUD's span files as runs.

The job that `hud eval --json` prints names the traces of one run: put it beside them. Traces that no job
names are one run per model. The spans do not name the environment, so the run is named after the only
template, else after the folder. Knows nothing of run folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import ConfigError
from proctor.formats.foreign_run import (
    ForeignRun,
    LeftOut,
    RolloutNumbers,
    Row,
    RowParts,
    build_error,
    build_row,
)
from proctor.formats.hud.spans import HudTrace, is_span
from proctor.formats.sources import (
    SourceFile,
    UnusableSourceError,
    get_list,
    get_text,
    read_document,
    read_json_lines,
)

TOOL = "hud"
SPANS = ".jsonl"


class TraceSet(msgspec.Struct, frozen=True):
    """The traces of a folder, oldest first, and what could not be read of them."""

    traces: Sequence[HudTrace]
    problems: Sequence[LeftOut]


def recognizes_file(source: SourceFile) -> bool:
    line = source.first_line
    if line is not None:
        return is_span(line)
    return source.document is not None and is_job(source.document)


def is_job(document: Mapping[str, Any]) -> bool:
    runs = get_list(document, "runs")
    return (
        "job_id" in document
        and bool(runs)
        and all(isinstance(run, dict) and isinstance(run.get("trace_id"), str) for run in runs)
    )


def recognizes_folder(folder: Path, names: frozenset[str]) -> bool:
    first = next((name for name in sorted(names) if name.endswith(SPANS)), None)
    return first is not None and recognizes_file(SourceFile(folder / first))


def read(path: Path, reward: str | None) -> Iterable[ForeignRun]:
    if reward is not None:
        raise ConfigError("A HUD trace has one score; --reward has nothing to choose from.")
    if path.is_dir():
        files = [each for each in sorted(path.iterdir()) if each.is_file() and not each.is_symlink()]
        yield from read_folder(
            path, read_traces([each for each in files if each.suffix == SPANS]), list_jobs(files)
        )
    elif path.suffix == SPANS:
        yield from read_folder(path, read_traces([path]), [])
    else:
        job = read_document(path)
        yield from read_folder(path, read_traces(list_traces_beside(path, job)), [job])


def list_traces_beside(path: Path, job: Mapping[str, Any]) -> list[Path]:
    """The span files of a job's traces in its own folder; an id that is a path leads nowhere."""
    names = [f"{run['trace_id']}{SPANS}" for run in get_list(job, "runs")]
    beside = [path.with_name(name) for name in names if "/" not in name]
    return [each for each in beside if each.is_file() and not each.is_symlink()]


def list_jobs(files: Iterable[Path]) -> list[dict[str, Any]]:
    found = []
    for path in files:
        if path.suffix == ".json":
            try:
                document = read_document(path)
            except UnusableSourceError:
                continue
            found += [document] if is_job(document) else []
    return found


def read_traces(files: Iterable[Path]) -> TraceSet:
    traces: dict[str, HudTrace] = {}
    problems = []
    for path in files:
        for line, fields in read_json_lines(path):
            if isinstance(fields, str):
                problems.append(LeftOut(f"{path.name}:{line}", fields))
            elif is_span(fields):
                trace_id = str(fields["trace_id"])
                traces.setdefault(trace_id, HudTrace(trace_id)).add(fields)
    return TraceSet(sorted(traces.values(), key=lambda trace: trace.start or 0.0), problems)


def read_folder(path: Path, found: TraceSet, jobs: Sequence[Mapping[str, Any]]) -> Iterator[ForeignRun]:
    by_id = {trace.trace_id: trace for trace in found.traces}
    problems = list(found.problems)
    for job in jobs:
        runs = get_list(job, "runs")
        named = [by_id.pop(run["trace_id"], None) for run in runs]
        model = next((trace.model for trace in named if trace is not None and trace.model), "")
        yield build_run(path, get_text(job, "job_id"), model, list(zip(runs, named, strict=True)), problems)
        problems = []
    left: dict[str, list[HudTrace]] = {}
    for trace in by_id.values():
        left.setdefault(trace.model, []).append(trace)
    for model, traces in left.items():
        own_id = traces[0].trace_id if len(traces) == 1 else f"{path.resolve()}-{model}"
        yield build_run(path, own_id, model, [({}, trace) for trace in traces], problems)
        problems = []


def build_run(
    path: Path,
    run_id: str,
    model: str,
    entries: Sequence[tuple[Mapping[str, Any], HudTrace | None]],
    problems: Sequence[LeftOut],
) -> ForeignRun:
    templates = {trace.template for _, trace in entries if trace is not None and trace.template}
    templates |= {get_text(run, "task_id") for run, _ in entries if get_text(run, "task_id")}
    starts = [trace.start for _, trace in entries if trace is not None and trace.start is not None]

    def rows() -> Iterator[Row | LeftOut]:
        yield from problems
        numbers = RolloutNumbers()
        for run, trace in entries:
            slug = get_text(run, "slug") or ("" if trace is None else trace.slug)
            parts = (
                build_bare_parts(run, slug, numbers.next(slug))
                if trace is None
                else trace.build_parts(numbers.next(slug), slug)
            )
            yield build_row(parts)

    return ForeignRun(
        tool=TOOL,
        source=path,
        id=run_id,
        env_id=templates.pop() if len(templates) == 1 else (path if path.is_dir() else path.parent).name,
        model=model,
        rows=rows,
        started_at=min(starts) if starts else None,
    )


def build_bare_parts(run: Mapping[str, Any], slug: str, number: int) -> RowParts:
    """A rollout of which only the job's line exists."""
    failed = bool(run.get("is_error")) or not isinstance(run.get("reward"), (int, float))
    message = get_text(run, "trace_error") or "HUD marks this run as an error"
    return RowParts(
        example_id=slug,
        rollout=number,
        outcome="environment_error" if failed else "scored",
        reward=None if failed else float(run["reward"]),
        error=build_error("Error", message) if failed else None,
        columns={"trace_id": run["trace_id"]},
    )
