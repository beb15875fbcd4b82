"""What a route uses to record its change: a wrapper for the work of its transaction.

    await platform.database.write(audit.of(caller, "team.delete", team, work))

A route that takes an `AuditDependency` is audited; a test lists those that change something and do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec
from litestar.di import NamedDependency
from sqlalchemy import Connection

from proctor.api.audit import AuditAction
from proctor.server.audit.records import add_entry
from proctor.server.people.tokens import Caller
from proctor.server.requests import HttpRequest, PlatformDependency, address_of

P = ParamSpec("P")
T = TypeVar("T")
LONGEST_ADDRESS = 100
TEXTS = ("description",)


class Audit(msgspec.Struct, frozen=True):
    """The audit log, as one request writes to it."""

    address: str

    def of(
        self,
        caller: Caller,
        action: AuditAction,
        target: str | Callable[[T], str | None],
        work: Callable[Concatenate[Connection, P], T],
        details: Mapping[str, Any] | None = None,
    ) -> Callable[Concatenate[Connection, P], T]:
        """The work, with an entry in the same transaction; the target may depend on what it returns,
        where None means that nothing was changed."""

        def work_and_record(connection: Connection, /, *args: P.args, **kwargs: P.kwargs) -> T:
            made = work(connection, *args, **kwargs)
            named = target if isinstance(target, str) else target(made)
            if named is not None:
                self.add(connection, caller, action, named, details)
            return made

        return work_and_record

    def add(
        self,
        connection: Connection,
        caller: Caller,
        action: AuditAction,
        target: str,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        add_entry(connection, caller, action, target, address=self.address, details=details)


def name_changes(change: msgspec.Struct) -> dict[str, Any]:
    """The words of a change that are not None; of longer texts only that they were changed."""
    fields = ((name, getattr(change, name)) for name in change.__struct_fields__)
    return {name: "changed" if name in TEXTS else value for name, value in fields if value is not None}


AuditDependency = NamedDependency[Audit]
"""The audit log, as a dependency of routes."""


async def find_audit(request: HttpRequest, platform: PlatformDependency) -> Audit:
    return Audit(address_of(request, platform)[:LONGEST_ADDRESS])
