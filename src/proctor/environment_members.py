"""Several environments run as one: properties they share, and calls forwarded to each.

Knows nothing of how a task finds its environment.
"""

from __future__ import annotations

from collections.abc import Mapping

from proctor.contracts import EnvironmentProtocol, Traits
from proctor.optional_contracts import (
    Fingerprint,
    explain_unrestorable,
    get_fingerprint,
    set_optional_concurrency,
)
from proctor.support.code_hash import hash_code


class Members:
    """The properties and calls of an environment made of others."""

    def __init__(self, members: Mapping[str, EnvironmentProtocol]) -> None:
        self.members = dict(members)

    @property
    def traits(self) -> Traits:
        traits = [member.traits for member in self.members.values()]
        return Traits(
            wants_agent=any(trait.wants_agent for trait in traits),
            grouped=any(trait.grouped for trait in traits),
            rescores=all(trait.rescores for trait in traits),
            capacity=min((trait.capacity for trait in traits if trait.capacity is not None), default=None),
        )

    async def check(self) -> None:
        for member in self.members.values():
            await member.check()

    async def close(self) -> None:
        failures: list[Exception] = []
        for member in self.members.values():
            try:
                await member.close()
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def explain_unrestorable(self) -> str | None:
        """Why a record is not enough to score a member's rollouts by, for the first member of which that is
        so."""
        reasons = (explain_unrestorable(member) for member in self.members.values())
        return next((reason for reason in reasons if reason is not None), None)

    def fingerprint(self) -> Fingerprint:
        every = [get_fingerprint(member) for member in self.members.values()]
        known = [each for each in every if each is not None]
        if len(known) < len(every):
            raise NotImplementedError("a member has no fingerprint")
        play = "" if not any(each.play for each in known) else hash_code([each.play for each in known])
        return Fingerprint(play, hash_code([each.scoring for each in known]))

    def set_concurrency(self, concurrency: int) -> None:
        for member in self.members.values():
            set_optional_concurrency(member, concurrency)
