"""The findings of a checkup, as data. Knows nothing of how they were found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from proctor.checkup.codes import SEVERITIES
from proctor.task import TaskId


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong, doubtful or worth knowing."""

    code: str
    message: str
    where: str = ""
    """A file with its line, or nothing where the environment as a whole is meant."""
    tasks: tuple[TaskId, ...] = ()
    """All tasks that are meant, where past runs show them; the message names the first."""

    @property
    def severity(self) -> str:
        return SEVERITIES[self.code[0]]


class CheckupRewards(msgspec.Struct, frozen=True, kw_only=True):
    """What the agents earned."""

    tasks: int = 0
    """Tasks that were played."""
    rewards: Mapping[str, float] = {}
    """Mean reward of each agent."""
    gold: str = ""
    """How the gold answers were said."""


class CheckupReport(msgspec.Struct, frozen=True, kw_only=True):
    """One checkup."""

    environment: str
    path: str | None
    findings: tuple[Finding, ...] = ()
    figures: CheckupRewards = CheckupRewards()

    def count(self, severity: str) -> int:
        return Counter(finding.severity for finding in self.findings)[severity]

    def passes(self, strict: bool = False) -> bool:
        return not (self.count("error") or (strict and self.count("warning")))
