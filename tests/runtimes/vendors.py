"""Stand-ins for the packages of Modal and Daytona: the calls we make, with the parameters the real ones have.

They remember every call, so that a test can hold it against the real signature where that is installed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import ModuleType, SimpleNamespace
from typing import Any

Call = tuple[str, tuple[Any, ...], dict[str, Any]]


class Calls(list[Call]):
    """What was called, by the path of the real function."""

    def named(self, path: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(args, settings) for name, args, settings in self if name == path]


def recorded(calls: Calls, path: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **settings: Any) -> Any:
        calls.append((path, args, settings))
        return answer(*args, **settings)

    return call


def with_aio(calls: Calls, path: str, answer: Callable[..., Awaitable[Any]]) -> SimpleNamespace:
    """A function of Modal's, whose asynchronous form stands beside it."""
    return SimpleNamespace(aio=recorded(calls, path, answer))


class ModalError(Exception):
    """`modal.exception.Error`."""


class ModalAuthError(ModalError):
    """`modal.exception.AuthError`."""


class ModalInvalidError(ModalError):
    """`modal.exception.InvalidError`."""


def modal(calls: Calls, tunnel: tuple[str, int], lookup_error: Exception | None = None) -> Any:
    """A package whose sandboxes have the given tunnel; `ends_with` of a sandbox is its exit code."""
    module: Any = ModuleType("modal")
    module.ends_with = None
    module.exception = SimpleNamespace(
        Error=ModalError, AuthError=ModalAuthError, InvalidError=ModalInvalidError
    )

    async def lookup(name: str, *, create_if_missing: bool = False) -> str:
        if lookup_error is not None:
            raise lookup_error
        return f"app {name}"

    async def tunnels(timeout: int = 50) -> dict[int, Any]:
        return {8765: SimpleNamespace(tls_socket=tunnel)}

    async def poll() -> int | None:
        code: int | None = module.ends_with
        return code

    async def terminate() -> None:
        await asyncio.sleep(0)

    async def read() -> str:
        return "its last words"

    async def create(*args: str, **settings: Any) -> Any:
        return SimpleNamespace(
            tunnels=with_aio(calls, "Sandbox.tunnels", tunnels),
            poll=with_aio(calls, "Sandbox.poll", poll),
            terminate=with_aio(calls, "Sandbox.terminate", terminate),
            stderr=SimpleNamespace(read=SimpleNamespace(aio=read)),
        )

    module.App = SimpleNamespace(lookup=with_aio(calls, "App.lookup", lookup))
    module.Sandbox = SimpleNamespace(create=with_aio(calls, "Sandbox.create", create))
    module.Secret = SimpleNamespace(from_dict=recorded(calls, "Secret.from_dict", lambda env_dict: env_dict))
    module.Image = SimpleNamespace(
        from_registry=recorded(calls, "Image.from_registry", lambda tag: f"registry {tag}"),
        from_name=recorded(calls, "Image.from_name", lambda name: f"name {name}"),
        from_id=recorded(calls, "Image.from_id", lambda image_id: f"id {image_id}"),
    )
    return module


class DaytonaError(Exception):
    """`daytona.DaytonaError`."""


class DaytonaNotFoundError(DaytonaError):
    """`daytona.DaytonaNotFoundError`."""


def daytona(calls: Calls, ssh_command: str, snapshot: str = "letters") -> Any:
    """A package with one snapshot, whose sandboxes are reached by the ssh command."""
    module: Any = ModuleType("daytona")
    module.DaytonaError = DaytonaError
    module.DaytonaNotFoundError = DaytonaNotFoundError
    module.exit_code = None

    def asynchronous(path: str, answer: Callable[[], Any] = lambda: None) -> Callable[..., Any]:
        async def call(*args: Any, **settings: Any) -> Any:
            await asyncio.sleep(0)
            return answer()

        return recorded(calls, path, call)

    process = SimpleNamespace(
        create_session=asynchronous("AsyncProcess.create_session"),
        execute_session_command=asynchronous(
            "AsyncProcess.execute_session_command", lambda: SimpleNamespace(cmd_id="c-1")
        ),
        get_session_command=asynchronous(
            "AsyncProcess.get_session_command", lambda: SimpleNamespace(exit_code=module.exit_code)
        ),
        get_session_command_logs=asynchronous(
            "AsyncProcess.get_session_command_logs", lambda: SimpleNamespace(output="its last words")
        ),
    )
    sandbox = SimpleNamespace(
        process=process,
        delete=asynchronous("AsyncSandbox.delete"),
        create_ssh_access=asynchronous(
            "AsyncSandbox.create_ssh_access",
            lambda: SimpleNamespace(token="ssh-token", ssh_command=ssh_command),
        ),
    )

    async def get(name: str) -> str:
        if name != snapshot:
            raise DaytonaNotFoundError("404")
        return name

    def client() -> Any:
        return SimpleNamespace(
            create=asynchronous("AsyncDaytona.create", lambda: sandbox),
            close=asynchronous("AsyncDaytona.close"),
            snapshot=SimpleNamespace(get=recorded(calls, "AsyncSnapshotService.get", get)),
        )

    module.AsyncDaytona = recorded(calls, "AsyncDaytona", client)
    for name in ("CreateSandboxFromSnapshotParams", "SessionExecuteRequest"):
        setattr(module, name, recorded(calls, name, lambda **fields: SimpleNamespace(**fields)))
    return module
