"""Several environments run as one: properties they share, and calls forwarded to each.

Knows nothing of how a task finds its environment.
"""

from __future__ import annotations

from collections.abc import Mapping

from proctor.contracts import EnvironmentProtocol, Traits, set_optional_concurrency


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

    def set_concurrency(self, concurrency: int) -> None:
        for member in self.members.values():
            set_optional_concurrency(member, concurrency)
