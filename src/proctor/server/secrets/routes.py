"""Secrets and variables over HTTP. Values go in; only those of variables come out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

import msgspec
from litestar import Router, delete, get, patch, post, put
from litestar.di import NamedDependency, Provide
from litestar.params import FromPath, JSONBody
from sqlalchemy import Connection, Row

from proctor.api.audit import AuditAction
from proctor.api.common import Page
from proctor.api.secrets import NewSecret, NewVariable, RunSecret, Secret, SecretChange, VariableChange
from proctor.server.audit.changes import Audit, AuditDependency
from proctor.server.hub.access import find_with_role, role_of
from proctor.server.hub.records import resolve_version
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import ForbiddenError
from proctor.server.requests import (
    CallerDependency,
    HttpRequest,
    PlatformDependency,
    SlugDependency,
    join_slug,
    run_idempotent,
)
from proctor.server.secrets import records
from proctor.server.secrets.links import WRITE_ROLES
from proctor.server.secrets.origins import list_run_secrets

P = ParamSpec("P")


def check_may_read(caller: Caller) -> None:
    caller.need("environments:read")
    need_person(caller)


def check_may_change(caller: Caller) -> None:
    caller.need("secrets:write")
    need_person(caller)


def need_person(caller: Caller) -> None:
    if caller.kind != "user":
        raise ForbiddenError("Only users manage secrets; a run finds its own in its environment variables.")


def name_secret(secret: Secret) -> str:
    """As the audit log names it: whose it is, and its name."""
    return f"{secret.environment or secret.owner} {secret.name}"


class SecretWriter(msgspec.Struct, frozen=True):
    """Changes the secrets and variables of one environment, each change with its audit entry."""

    environment: str
    request: HttpRequest
    caller: Caller
    platform: Platform
    audit: Audit

    async def write(
        self,
        action: AuditAction,
        change: Callable[Concatenate[Connection, Row[Any], P], Secret],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Secret:
        """One transaction; what is created is created once per idempotency key."""
        check_may_change(self.caller)

        def work(connection: Connection) -> Secret:
            environment = find_with_role(connection, self.caller, self.environment, "write")
            return change(connection, environment, *args, **kwargs)

        audited = self.audit.of(self.caller, action, name_secret, work)
        if self.request.method == "POST":
            return await run_idempotent(self.request, self.platform, self.caller, audited, Secret)
        return await self.platform.database.write(audited)


async def find_secret_writer(
    environment: SlugDependency,
    request: HttpRequest,
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> SecretWriter:
    return SecretWriter(environment, request, caller, platform, audit)


SecretWriterDependency = NamedDependency[SecretWriter]


@get("/secrets", summary="Your global secrets and those of your teams, without their values")
async def list_global(caller: CallerDependency, platform: PlatformDependency) -> Page[Secret]:
    check_may_read(caller)
    return Page(await platform.database.read(records.list_global, caller))


@post("/secrets", summary="Store a global secret, to be linked to environments")
async def add_global(
    request: HttpRequest,
    data: JSONBody[NewSecret],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> Secret:
    check_may_change(caller)

    def work(connection: Connection) -> Secret:
        return records.add_global(connection, platform.vault, caller, data)

    added = audit.of(caller, "secret.add", name_secret, work)
    return await run_idempotent(request, platform, caller, added, Secret)


@patch("/secrets/{secret_id:str}", summary="Change a global secret's value or description")
async def change_global(
    secret_id: FromPath[str],
    data: JSONBody[SecretChange],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> Secret:
    check_may_change(caller)
    work = audit.of(caller, "secret.change", name_secret, records.change_global)
    return await platform.database.write(work, platform.vault, caller, secret_id, data)


@delete("/secrets/{secret_id:str}", summary="Delete a global secret, and its links")
async def delete_global(
    secret_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency, audit: AuditDependency
) -> None:
    check_may_change(caller)
    work = audit.of(caller, "secret.delete", name_secret, records.delete_global)
    await platform.database.write(work, caller, secret_id)


ENVIRONMENT = "/environments/{owner:str}/{name:str}"


@get(f"{ENVIRONMENT}/secrets", summary="Secrets of an environment and those linked to it, without values")
async def list_secrets(
    environment: SlugDependency, caller: CallerDependency, platform: PlatformDependency
) -> Page[Secret]:
    check_may_read(caller)

    def work(connection: Connection) -> list[Secret]:
        return records.list_for_environment(
            connection, find_with_role(connection, caller, environment, "write")
        )

    return Page(await platform.database.read(work))


@get(
    f"{ENVIRONMENT}/versions/{{version:str}}/secrets",
    summary="Which secrets and variables a run of yours would have, and why, without values",
)
async def preview_secrets(
    environment: SlugDependency,
    version: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> Page[RunSecret]:
    check_may_read(caller)

    def work(connection: Connection) -> list[RunSecret]:
        found, row = resolve_version(connection, caller, f"{environment}@{version}")
        may_write = role_of(connection, caller, found) in WRITE_ROLES
        return list_run_secrets(connection, found, row.secrets, (), may_write=may_write)

    return Page(await platform.database.read(work))


@post(f"{ENVIRONMENT}/secrets", summary="Store a secret for one environment")
async def add_secret(data: JSONBody[NewSecret], secret_writer: SecretWriterDependency) -> Secret:
    vault = secret_writer.platform.vault
    return await secret_writer.write("secret.add", records.add_to_environment, vault, data)


@patch(
    f"{ENVIRONMENT}/secrets/{{secret_id:str}}",
    summary="Change the value or description of an environment's secret",
)
async def change_secret(
    secret_id: FromPath[str], data: JSONBody[SecretChange], secret_writer: SecretWriterDependency
) -> Secret:
    vault = secret_writer.platform.vault
    return await secret_writer.write("secret.change", records.change_in_environment, vault, secret_id, data)


@delete(f"{ENVIRONMENT}/secrets/{{secret_id:str}}", summary="Delete a secret of an environment")
async def delete_secret(secret_id: FromPath[str], secret_writer: SecretWriterDependency) -> None:
    await secret_writer.write("secret.delete", records.delete_in_environment, secret_id)


@put(f"{ENVIRONMENT}/secrets/links/{{secret_id:str}}", summary="Let an environment use a global secret")
async def link(secret_id: FromPath[str], secret_writer: SecretWriterDependency) -> Secret:
    return await secret_writer.write("secret.link", records.link, secret_writer.caller, secret_id)


@delete(
    f"{ENVIRONMENT}/secrets/links/{{secret_id:str}}", summary="Unlink a global secret from an environment"
)
async def unlink(
    environment: SlugDependency,
    secret_id: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> None:
    check_may_change(caller)

    def work(connection: Connection) -> None:
        if not records.unlink_own(connection, caller, environment, secret_id):
            found = find_with_role(connection, caller, environment, "write")
            records.unlink(connection, found, secret_id)

    details = {"secret_id": secret_id}
    await platform.database.write(audit.of(caller, "secret.unlink", environment, work, details))


@get(f"{ENVIRONMENT}/variables", summary="Variables of an environment, with their values")
async def list_variables(
    environment: SlugDependency, caller: CallerDependency, platform: PlatformDependency
) -> Page[Secret]:
    check_may_read(caller)

    def work(connection: Connection) -> list[Secret]:
        return records.list_variables(connection, find_with_role(connection, caller, environment, "read"))

    return Page(await platform.database.read(work))


@post(f"{ENVIRONMENT}/variables", summary="Set a variable for every run of an environment")
async def add_variable(data: JSONBody[NewVariable], secret_writer: SecretWriterDependency) -> Secret:
    return await secret_writer.write("variable.add", records.add_variable, data)


@patch(f"{ENVIRONMENT}/variables/{{variable_id:str}}", summary="Change the value of a variable")
async def change_variable(
    variable_id: FromPath[str], data: JSONBody[VariableChange], secret_writer: SecretWriterDependency
) -> Secret:
    return await secret_writer.write("variable.change", records.change_variable, variable_id, data.value)


@delete(f"{ENVIRONMENT}/variables/{{variable_id:str}}", summary="Delete a variable")
async def delete_variable(variable_id: FromPath[str], secret_writer: SecretWriterDependency) -> None:
    await secret_writer.write("variable.delete", records.delete_variable, variable_id)


router = Router(
    "",
    route_handlers=[
        list_global,
        add_global,
        change_global,
        delete_global,
        list_secrets,
        preview_secrets,
        add_secret,
        change_secret,
        delete_secret,
        link,
        unlink,
        list_variables,
        add_variable,
        change_variable,
        delete_variable,
    ],
    dependencies={
        "environment": Provide(join_slug, sync_to_thread=False),
        "secret_writer": Provide(find_secret_writer),
    },
    tags=["secrets"],
)
