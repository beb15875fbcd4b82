"""The whole checkup: read the source, have the environment run in processes of their own, and gather.

Two processes load it, with different seeds for the order of sets, because that order must not matter.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from proctor.checkup import static
from proctor.checkup.finding import CheckupReport, CheckupRewards, Finding
from proctor.checkup.messages import (
    CheckupDone,
    CheckupMessage,
    CheckupRequest,
    FindingReported,
    StepStarted,
    TasksRead,
    TrialPlayed,
    helper_endpoint,
)
from proctor.checkup.past_runs import find_played_problems, read_played
from proctor.checkup.tasks import Content, find_content_change
from proctor.packages import loading as packages
from proctor.support.processes import describe_exit, end_group

START_SECONDS = 60.0
"""How long a process may take before it says anything: it has only Proctor itself to import."""
LONGEST_LINE_SHOWN = 120

StatusCallback = Callable[[str], None]


class ExaminationResult(msgspec.Struct, kw_only=True):
    """What one process reported."""

    findings: list[Finding] = []
    content: Content | None = None
    figures: CheckupRewards = CheckupRewards()


def run_checkup(
    request: CheckupRequest, report_status: StatusCallback = lambda _: None, runs: Sequence[Path] = ()
) -> CheckupReport:
    """Collect every finding. `say` receives what is being examined; `runs` are folders of past runs, whose
    results are examined too."""
    helper_endpoint(request)
    found = packages.find_environment(request.env_id, request.env_dir)
    findings = static.find_static_problems(found, request.arguments)
    figures = CheckupRewards()
    content = None
    if not any(finding.code in ("E101", "E102", "E104") for finding in findings):
        first = examine_in_child(request, "0", report_status)
        findings += first.findings
        figures, content = first.figures, first.content
        findings += check_stability(request, first, report_status)
    if runs:
        report_status("past runs")
        findings += find_played_problems(read_played(runs), content)
    file = packages.main_file(found)
    path = found.path or file
    return CheckupReport(
        environment=found.env_id,
        path=static.shorten_path(path) if path else None,
        findings=tuple(sort_findings(findings)),
        figures=figures,
    )


def check_stability(
    request: CheckupRequest, first: ExaminationResult, report_status: StatusCallback
) -> list[Finding]:
    """Whether another process reads other tasks. If it cannot read them, that says nothing new."""
    if not first.content or any(finding.code in ("E204", "E303", "E304") for finding in first.findings):
        return []
    report_status("in another process")
    other = examine_in_child(msgspec.structs.replace(request, only_tasks=True), "1", lambda _: None)
    if other.content is None:
        return [finding for finding in other.findings if finding.severity == "error"]
    changed = find_content_change(first.content, other.content, "in another process")
    return [changed] if changed else []


def sort_findings(findings: list[Finding]) -> list[Finding]:
    """By severity, then by code; each thing once."""
    rank = {"error": 0, "warning": 1, "note": 2}
    return sorted(dict.fromkeys(findings), key=lambda finding: (rank[finding.severity], finding.code))


def examine_in_child(
    request: CheckupRequest, hash_seed: str, report_status: StatusCallback
) -> ExaminationResult:
    """The messages of a process that runs the environment, or how it ended without them."""
    result = ExaminationResult()
    with tempfile.TemporaryFile() as printed, open_child(request, hash_seed, printed) as (process, pipe):
        ending = read_child_output(pipe, result, report_status)
        if ending:
            result.findings.append(describe_early_end(ending, process, request))
        if not request.only_tasks:
            result.findings += find_printed_output(printed)
    return result


@contextmanager
def open_child(
    request: CheckupRequest, hash_seed: str, printed: IO[bytes]
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The process, in a group of its own, so that nothing it started outlives it."""
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "proctor.checkup.child",
                msgspec.json.encode(request).decode(),
                str(writing),
            ],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            pass_fds=[writing],
            start_new_session=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONUNBUFFERED": "1"},
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    try:
        yield process, reading
    finally:
        end_group(process.pid)
        process.wait()
        os.close(reading)


def read_child_output(pipe: int, result: ExaminationResult, report_status: StatusCallback) -> str:
    """Read lines until the check is done; otherwise returns what it was doing when they stopped, and how."""
    doing, seconds, rest = "starting", START_SECONDS, b""
    while True:
        ready, _, _ = select.select([pipe], [], [], seconds)
        if not ready:
            return f"{doing} takes more than {seconds:g} s"
        chunk = os.read(pipe, 65536)
        if not chunk:
            return doing
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            message = msgspec.json.decode(line, type=CheckupMessage)
            if isinstance(message, CheckupDone):
                return ""
            if isinstance(message, StepStarted):
                if message.what != doing:
                    report_status(message.what)
                doing, seconds = message.what, message.seconds
            record_line(message, result)


def record_line(message: CheckupMessage, result: ExaminationResult) -> None:
    match message:
        case FindingReported(finding):
            result.findings.append(finding)
        case TasksRead(content):
            result.content = content
        case TrialPlayed(figures):
            result.figures = figures


def describe_early_end(what: str, process: subprocess.Popen[bytes], request: CheckupRequest) -> Finding:
    if " takes more than " in what:
        return Finding("E303", f"{what}; if it should, give more with --timeout")
    try:
        code = process.wait(request.seconds)
    except subprocess.TimeoutExpired:
        return Finding("E303", f"{what} closed everything and still runs")
    return Finding("E304", f"the process {describe_exit(code)} while {what}")


def find_printed_output(printed: IO[bytes]) -> list[Finding]:
    """The environment's output, if any."""
    printed.seek(0)
    lines = [line for line in printed.read(1_000_000).decode(errors="replace").splitlines() if line.strip()]
    if not lines:
        return []
    first = lines[0].strip()[:LONGEST_LINE_SHOWN]
    words = f"{len(lines)} lines were printed to standard output; use logging. The first: {first!r}"
    return [Finding("W311", words)]
