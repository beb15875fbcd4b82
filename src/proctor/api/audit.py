"""The audit log in the API: who changed what, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec

AuditAction = Literal[
    "balance.grant",
    "comment.delete",
    "dataset.change",
    "dataset.delete",
    "dataset.push",
    "environment.change",
    "environment.delete",
    "environment.fork",
    "environment.push",
    "host.add",
    "login.end",
    "login.link",
    "login.open",
    "member.remove",
    "member.set",
    "price.remove",
    "price.set",
    "role.remove",
    "role.set",
    "run.delete",
    "run.edit",
    "run.resume",
    "run.share",
    "run.start",
    "run.stop",
    "run.upload",
    "secret.add",
    "secret.change",
    "secret.delete",
    "secret.link",
    "secret.unlink",
    "source.add",
    "source.remove",
    "team.add",
    "team.delete",
    "team.rename",
    "token.add",
    "token.revoke",
    "user.add",
    "user.admin",
    "user.invite",
    "user.suspend",
    "variable.add",
    "variable.change",
    "variable.delete",
    "version.delete",
]
"""What was changed, then what was done to it."""
AUDIT_ACTIONS: tuple[AuditAction, ...] = get_args(AuditAction)


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One change that a request made. It never has the value of a secret, nor a token."""

    id: str
    at: float
    user: str
    """The user whose token or session it was; empty for the operator of the server's machine."""
    action: AuditAction
    target: str
    """What was changed: a name, or an id."""
    details: Mapping[str, Any] = {}
    """What it was changed to, such as a role or an amount."""
    token: str = ""
    """The id of the token, which is not secret."""
    address: str = ""
    """Where the request came from."""
