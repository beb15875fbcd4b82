"""A gate's verdict for people and for CI: text, Markdown, JUnit XML, workflow annotations, JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import msgspec

from proctor.cli.views.comparison import WITHOUT_TERMINAL, ComparedPair, task_lines
from proctor.cli.views.comparison_markdown import escape_markdown, markdown_table, task_markdown
from proctor.cli.views.escape import one_line, strip_escapes
from proctor.cli.views.lines import BAD, DIM, DONE, STRONG, WARN, StyledLine, styled_line
from proctor.cli.views.page import wrap_text
from proctor.comparison.gate import GateOutcome, GateResult, combine_outcomes

STYLES = {"PASS": DONE, "FAIL": BAD, "INCONCLUSIVE": WARN}
MARKS = {"PASS": "✅", "FAIL": "❌", "INCONCLUSIVE": "❔"}
SHOWN_TASKS = 5
INDENT = "  "
NO_RULE = "no rule of the policy is about this environment"
RULE = 16
"""Columns before the text of a rule."""


class GatedPair(msgspec.Struct, frozen=True):
    """The verdict on one environment, and how its runs are named to `proctor trace`."""

    result: GateResult
    words: Mapping[str, str]

    @property
    def compared(self) -> ComparedPair | None:
        comparison = self.result.comparison
        return None if comparison is None else ComparedPair(comparison, self.words)

    @property
    def title(self) -> str:
        against = f" against {', '.join(self.result.baseline)}" if self.result.baseline else ""
        return f"{self.result.environment} {', '.join(self.result.runs)}{against}"


class GateReport(msgspec.Struct, frozen=True):
    """The verdict on every environment."""

    pairs: Sequence[GatedPair]
    missing: Mapping[str, str]
    """Environments where nothing was measured → what asks for them: the baseline, or a rule."""

    @property
    def outcome(self) -> GateOutcome:
        outcomes = [pair.result.outcome for pair in self.pairs if pair.result.rules]
        return combine_outcomes([*outcomes, "INCONCLUSIVE"] if self.missing else outcomes)

    def document(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
            "environments": [pair.result for pair in self.pairs],
            "missing": list(self.missing),
        }


def gate_lines(report: GateReport, width: int | None) -> Iterator[StyledLine]:
    for pair in report.pairs:
        yield styled_line((one_line(pair.title), STRONG))
        if not pair.result.rules:
            yield styled_line(INDENT, (NO_RULE, DIM))
        for rule in pair.result.rules:
            yield styled_line(
                INDENT, (f"{rule.outcome:<12}  ", STYLES[rule.outcome]), f"{one_line(rule.rule)}  "
            )
            for piece in wrap_text(one_line(rule.text), max(20, (width or WITHOUT_TERMINAL) - RULE)):
                yield styled_line(" " * RULE, (piece, DIM))
        if pair.compared is not None and pair.result.outcome != "PASS":
            yield from task_lines(pair.compared, SHOWN_TASKS, "proctor eval compare shows all")
        yield styled_line()
    for name, reason in report.missing.items():
        yield styled_line((f"{one_line(name)} was not run; {reason}.", WARN))
    yield styled_line((report.outcome, STYLES[report.outcome]))


def gate_markdown(report: GateReport) -> str:
    """A comment for a pull request."""
    lines = [f"## {MARKS[report.outcome]} Evaluation gate: {report.outcome}", ""]
    for pair in report.pairs:
        lines += [f"### {escape_markdown(pair.title)}", ""]
        rows = [(f"{MARKS[rule.outcome]} {rule.outcome}", rule.rule, rule.text) for rule in pair.result.rules]
        lines += markdown_table(("", "rule", "found"), rows) if rows else [f"{NO_RULE}."]
        if pair.compared is not None:
            lines += task_markdown(pair.compared)
        lines.append("")
    lines += [f"- {escape_markdown(name)} was not run; {reason}." for name, reason in report.missing.items()]
    return "\n".join(lines).rstrip() + "\n"


def write_junit(report: GateReport) -> bytes:
    """A suite per environment, a case per rule. What is inconclusive is an error, not a failure."""
    root = ElementTree.Element("testsuites", name="proctor eval gate")
    for pair in report.pairs:
        rules = pair.result.rules
        counts = {
            "tests": len(rules),
            "failures": sum(rule.outcome == "FAIL" for rule in rules),
            "errors": sum(rule.outcome == "INCONCLUSIVE" for rule in rules),
        }
        attributes = {"name": clean_xml(pair.title), **{name: str(count) for name, count in counts.items()}}
        suite = ElementTree.SubElement(root, "testsuite", attributes)
        for rule in rules:
            case = ElementTree.SubElement(
                suite, "testcase", classname=clean_xml(pair.result.environment), name=clean_xml(rule.rule)
            )
            if rule.outcome != "PASS":
                kind = "failure" if rule.outcome == "FAIL" else "error"
                found = ElementTree.SubElement(case, kind, type=rule.outcome, message=clean_xml(rule.text))
                found.text = clean_xml("\n".join([rule.text, *list_flips(pair)]))
    for name, reason in report.missing.items():
        suite = ElementTree.SubElement(root, "testsuite", name=clean_xml(name), tests="1", errors="1")
        case = ElementTree.SubElement(suite, "testcase", classname=clean_xml(name), name="was run")
        ElementTree.SubElement(case, "error", type="INCONCLUSIVE", message=f"was not run; {reason}")
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def list_flips(pair: GatedPair) -> Iterator[str]:
    """The lost tasks, each with the command that shows why."""
    compared = pair.compared
    if compared is None:
        return
    for task in compared.comparison.tasks:
        if task.flip == "lost":
            yield f"lost {task.task}: {compared.trace_diff(task)}"


def github_annotations(report: GateReport) -> Iterator[str]:
    """Workflow commands: an error for each failed rule, a warning for each open one."""
    levels = {"FAIL": "error", "INCONCLUSIVE": "warning"}
    for pair in report.pairs:
        for rule in pair.result.rules:
            if rule.outcome in levels:
                title = escape_command(f"{pair.result.environment}: {rule.rule}", in_property=True)
                yield f"::{levels[rule.outcome]} title={title}::{escape_command(rule.text)}"
    for name, reason in report.missing.items():
        yield f"::warning title={escape_command(name, in_property=True)}::was not run; {reason}"


def escape_command(text: str, in_property: bool = False) -> str:
    """Text in which nothing ends the command or begins another."""
    text = one_line(text).replace("%", "%25")
    return text.replace(":", "%3A").replace(",", "%2C") if in_property else text


def clean_xml(text: str) -> str:
    """Text without what XML cannot hold."""
    return strip_escapes(text).replace("\ufffe", "").replace("\uffff", "")
