"""Secrets and variables over HTTP. Values go in; only those of variables come out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from litestar import Router, delete, get, patch, post, put
from litestar.params import FromPath, JSONBody
from sqlalchemy import Connection, Row

from proctor.api.common import Page
from proctor.api.hub import Role
from proctor.api.secrets import NewSecret, NewVariable, Secret, SecretChange, VariableChange
from proctor.server.hub.access import find_with_role
from proctor.server.people.tokens import Caller
from proctor.server.problems import ForbiddenError
from proctor.server.requests import CallerDependency, HttpRequest, PlatformDependency, run_idempotent
from proctor.server.secrets import records

T = TypeVar("T")


def check_may_read(caller: Caller) -> None:
    caller.need("environments:read")
    need_person(caller)


def check_may_change(caller: Caller) -> None:
    caller.need("secrets:write")
    need_person(caller)


def need_person(caller: Caller) -> None:
    if caller.kind != "user":
        raise ForbiddenError("Only users manage secrets; a run finds its own in its environment variables.")


def with_environment(
    caller: Caller, owner: str, name: str, least: Role, work: Callable[[Connection, Row[Any]], T]
) -> Callable[[Connection], T]:
    """The work, on an environment for which the caller has the role."""

    def find_and_work(connection: Connection) -> T:
        return work(connection, find_with_role(connection, caller, f"{owner}/{name}", least))

    return find_and_work


@get("/secrets", summary="Your global secrets and those of your teams, without their values")
async def list_global(caller: CallerDependency, platform: PlatformDependency) -> Page[Secret]:
    check_may_read(caller)
    return Page(await platform.database.read(records.list_global, caller))


@post("/secrets", summary="Store a global secret, to be linked to environments")
async def add_global(
    request: HttpRequest, data: JSONBody[NewSecret], caller: CallerDependency, platform: PlatformDependency
) -> Secret:
    check_may_change(caller)
    return await run_idempotent(
        request,
        platform,
        caller,
        lambda connection: records.add_global(connection, platform.vault, caller, data),
        Secret,
    )


@patch("/secrets/{secret_id:str}", summary="Change a global secret's value or description")
async def change_global(
    secret_id: FromPath[str],
    data: JSONBody[SecretChange],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> Secret:
    check_may_change(caller)
    return await platform.database.write(records.change_global, platform.vault, caller, secret_id, data)


@delete("/secrets/{secret_id:str}", summary="Delete a global secret, and its links")
async def delete_global(
    secret_id: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> None:
    check_may_change(caller)
    await platform.database.write(records.delete_global, caller, secret_id)


ENVIRONMENT = "/environments/{owner:str}/{name:str}"


@get(f"{ENVIRONMENT}/secrets", summary="Secrets of an environment and those linked to it, without values")
async def list_secrets(
    owner: FromPath[str], name: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Page[Secret]:
    check_may_read(caller)
    work = with_environment(caller, owner, name, "write", records.list_for_environment)
    return Page(await platform.database.read(work))


@post(f"{ENVIRONMENT}/secrets", summary="Store a secret for one environment")
async def add_secret(
    request: HttpRequest,
    owner: FromPath[str],
    name: FromPath[str],
    data: JSONBody[NewSecret],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> Secret:
    check_may_change(caller)

    def work(connection: Connection, environment: Row[Any]) -> Secret:
        return records.add_to_environment(connection, platform.vault, environment, data)

    return await run_idempotent(
        request, platform, caller, with_environment(caller, owner, name, "write", work), Secret
    )


@patch(
    f"{ENVIRONMENT}/secrets/{{secret_id:str}}",
    summary="Change the value or description of an environment's secret",
)
async def change_secret(
    owner: FromPath[str],
    name: FromPath[str],
    secret_id: FromPath[str],
    data: JSONBody[SecretChange],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> Secret:
    check_may_change(caller)

    def work(connection: Connection, environment: Row[Any]) -> Secret:
        return records.change_in_environment(connection, platform.vault, environment, secret_id, data)

    return await platform.database.write(with_environment(caller, owner, name, "write", work))


@delete(f"{ENVIRONMENT}/secrets/{{secret_id:str}}", summary="Delete a secret of an environment")
async def delete_secret(
    owner: FromPath[str],
    name: FromPath[str],
    secret_id: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> None:
    check_may_change(caller)

    def work(connection: Connection, environment: Row[Any]) -> None:
        records.delete_in_environment(connection, environment, secret_id)

    await platform.database.write(with_environment(caller, owner, name, "write", work))


@put(f"{ENVIRONMENT}/secrets/links/{{secret_id:str}}", summary="Let an environment use a global secret")
async def link(
    owner: FromPath[str],
    name: FromPath[str],
    secret_id: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> Secret:
    check_may_change(caller)

    def work(connection: Connection, environment: Row[Any]) -> Secret:
        return records.link(connection, caller, environment, secret_id)

    return await platform.database.write(with_environment(caller, owner, name, "write", work))


@delete(
    f"{ENVIRONMENT}/secrets/links/{{secret_id:str}}", summary="Unlink a global secret from an environment"
)
async def unlink(
    owner: FromPath[str],
    name: FromPath[str],
    secret_id: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> None:
    check_may_change(caller)

    def work(connection: Connection) -> None:
        if not records.unlink_own(connection, caller, f"{owner}/{name}", secret_id):
            environment = find_with_role(connection, caller, f"{owner}/{name}", "write")
            records.unlink(connection, environment, secret_id)

    await platform.database.write(work)


@get(f"{ENVIRONMENT}/variables", summary="Variables of an environment, with their values")
async def list_variables(
    owner: FromPath[str], name: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Page[Secret]:
    check_may_read(caller)
    work = with_environment(caller, owner, name, "read", records.list_variables)
    return Page(await platform.database.read(work))


@post(f"{ENVIRONMENT}/variables", summary="Set a variable for every run of an environment")
async def add_variable(
    request: HttpRequest,
    owner: FromPath[str],
    name: FromPath[str],
    data: JSONBody[NewVariable],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> Secret:
    check_may_change(caller)

    def work(connection: Connection, environment: Row[Any]) -> Secret:
        return records.add_variable(connection, environment, data)

    return await run_idempotent(
        request, platform, caller, with_environment(caller, owner, name, "write", work), Secret
    )


@patch(f"{ENVIRONMENT}/variables/{{variable_id:str}}", summary="Change the value of a variable")
async def change_variable(
    owner: FromPath[str],
    name: FromPath[str],
    variable_id: FromPath[str],
    data: JSONBody[VariableChange],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> Secret:
    check_may_change(caller)

    def work(connection: Connection, environment: Row[Any]) -> Secret:
        return records.change_variable(connection, environment, variable_id, data.value)

    return await platform.database.write(with_environment(caller, owner, name, "write", work))


@delete(f"{ENVIRONMENT}/variables/{{variable_id:str}}", summary="Delete a variable")
async def delete_variable(
    owner: FromPath[str],
    name: FromPath[str],
    variable_id: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> None:
    check_may_change(caller)

    def work(connection: Connection, environment: Row[Any]) -> None:
        records.delete_variable(connection, environment, variable_id)

    await platform.database.write(with_environment(caller, owner, name, "write", work))


router = Router(
    "",
    route_handlers=[
        list_global,
        add_global,
        change_global,
        delete_global,
        list_secrets,
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
    tags=["secrets"],
)
