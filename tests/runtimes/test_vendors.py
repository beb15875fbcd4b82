"""Modal and Daytona up to the calls of their packages; the connections are real: TLS, and ssh.

Where a package is installed, what we call is held against its real signatures.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import json
import shutil
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from proctor.errors import ConfigError, EnvError, InfraError
from proctor.runtimes.daytona import DaytonaRuntime, parse_ssh_command
from proctor.runtimes.modal import ModalRuntime
from proctor.runtimes.runtime import Runtime
from proctor.task import Task

TASK = Task(id="count")
Serve = Callable[[], AbstractAsyncContextManager[int]]


def stand_ins() -> Any:
    spec = importlib.util.spec_from_file_location("vendors", Path(__file__).with_name("vendors.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


VENDORS = stand_ins()


async def answer_of(place: Runtime) -> Any:
    reader, writer = await asyncio.open_unix_connection(urlsplit(place.url).path)
    writer.write(b'{"id": 5, "method": "tasks.list"}\n')
    answer = json.loads(await reader.readline())
    writer.close()
    return answer["id"]


# Modal


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's side of TLS for localhost, which this process trusts."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=localhost",
    ]
    subprocess.run(
        [*words, "-addext", "subjectAltName=DNS:localhost", *files], check=True, capture_output=True
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return context


@asynccontextmanager
async def encrypted(port: int, context: ssl.SSLContext) -> AsyncIterator[int]:
    """A tunnel to a port, as Modal has them."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)

        async def back() -> None:
            while data := await inner_reader.read(1000):
                writer.write(data)
            writer.close()

        carrying = asyncio.ensure_future(back())
        while data := await reader.read(1000):
            inner_writer.write(data)
        inner_writer.close()
        await carrying

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


def play_on_modal(
    monkeypatch: pytest.MonkeyPatch, served: Serve, context: ssl.SSLContext, **settings: Any
) -> tuple[Any, Any]:
    calls = VENDORS.Calls()

    async def play() -> Any:
        async with served() as port, encrypted(port, context) as tunnel:
            monkeypatch.setitem(sys.modules, "modal", VENDORS.modal(calls, ("localhost", tunnel)))
            runtime = ModalRuntime("letters:1", **settings)
            await runtime.check()
            async with runtime(TASK) as place:
                return await answer_of(place)

    return calls, asyncio.run(play())


def test_a_modal_sandbox_is_made_reached_by_tls_and_ended(
    monkeypatch: pytest.MonkeyPatch, served: Serve, certificate: ssl.SSLContext
) -> None:
    calls, answer = play_on_modal(monkeypatch, served, certificate, cpu=2, memory=1024, env={"A": "1"})

    assert answer == 5
    ((words, settings),) = calls.named("Sandbox.create")
    assert words == ("proctor", "serve", "--host", "0.0.0.0", "-p", "8765")
    assert settings["image"] == "registry letters:1"
    assert settings["encrypted_ports"] == [8765]
    assert settings["timeout"] == 3600
    assert (settings["cpu"], settings["memory"]) == (2, 1024)
    assert settings["secrets"][0].keys() == {"A", "PROCTOR_SERVE_TOKEN"}
    assert len(calls.named("Sandbox.terminate")) == 1


def test_a_modal_sandbox_that_ends_at_once_says_why_and_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = VENDORS.Calls()
    package = VENDORS.modal(calls, ("127.0.0.1", 9))
    package.ends_with = 2
    monkeypatch.setitem(sys.modules, "modal", package)

    async def play() -> None:
        async with ModalRuntime("letters")(TASK):
            raise AssertionError("nothing to play in")

    with pytest.raises(EnvError, match="of letters ended with exit code 2; its last output: its last words"):
        asyncio.run(play())
    assert len(calls.named("Sandbox.terminate")) == 1


def test_a_login_that_modal_refuses_is_told_before_anything_is_paid_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    package = VENDORS.modal(VENDORS.Calls(), ("", 0), VENDORS.ModalAuthError("token expired"))
    monkeypatch.setitem(sys.modules, "modal", package)

    with pytest.raises(ConfigError, match="Modal refused the login: token expired; run `modal token new`"):
        asyncio.run(ModalRuntime("letters").check())


# Daytona


@asynccontextmanager
async def gateway() -> AsyncIterator[int]:
    """An ssh server that lets everybody in who knows the user's name, and carries connections to ports."""
    asyncssh = pytest.importorskip("asyncssh")

    class Gate(asyncssh.SSHServer):  # type: ignore[misc, name-defined]
        def begin_auth(self, username: str) -> bool:
            return username != "ssh-token"

        def connection_requested(self, *_: object) -> bool:
            return True

    key = asyncssh.generate_private_key("ssh-ed25519")
    async with await asyncssh.create_server(Gate, "127.0.0.1", 0, server_host_keys=[key]) as server:
        yield server.get_port()


def play_on_daytona(monkeypatch: pytest.MonkeyPatch, served: Serve, **settings: Any) -> tuple[Any, Any]:
    calls = VENDORS.Calls()

    async def play() -> Any:
        async with served() as port, gateway() as ssh_port:
            package = VENDORS.daytona(calls, f"ssh -p {ssh_port} ssh-token@127.0.0.1")
            monkeypatch.setitem(sys.modules, "daytona", package)
            runtime = DaytonaRuntime("letters", port=port, **settings)
            await runtime.check()
            try:
                async with runtime(TASK) as place:
                    return await answer_of(place)
            finally:
                await runtime.close()

    return calls, asyncio.run(play())


def test_a_daytona_sandbox_is_made_reached_by_ssh_and_deleted(
    monkeypatch: pytest.MonkeyPatch, served: Serve
) -> None:
    calls, answer = play_on_daytona(monkeypatch, served, network=False)

    assert answer == 5
    ((_, wanted),) = calls.named("CreateSandboxFromSnapshotParams")
    assert wanted["snapshot"] == "letters"
    assert wanted["network_block_all"] is True
    assert wanted["ttl_minutes"] == 60
    assert wanted["env_vars"].keys() == {"PROCTOR_SERVE_TOKEN"}
    ((_, request),) = calls.named("SessionExecuteRequest")
    assert request["command"].startswith("proctor serve --host 0.0.0.0 -p ")
    assert len(calls.named("AsyncSandbox.delete")) == len(calls.named("AsyncDaytona.close")) == 1


def test_a_snapshot_that_daytona_does_not_have_is_told_before_anything_is_paid_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("asyncssh")
    monkeypatch.setitem(sys.modules, "daytona", VENDORS.daytona(VENDORS.Calls(), ""))

    with pytest.raises(ConfigError, match="Daytona has no snapshot 'numbers'; create it first"):
        asyncio.run(DaytonaRuntime("numbers").check())


def test_the_gateway_is_read_from_daytonas_ssh_command() -> None:
    assert parse_ssh_command("ssh abc@ssh.example") == ("ssh.example", 22)
    assert parse_ssh_command("ssh -p 2222 'a#b'@ssh.example") == ("ssh.example", 2222)
    with pytest.raises(InfraError, match="names no host"):
        parse_ssh_command("ssh")


# Both


@pytest.mark.parametrize(("runtime", "name"), [(ModalRuntime, "modal"), (DaytonaRuntime, "daytona")])
def test_a_package_that_is_missing_is_named(runtime: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(ConfigError, match=rf"pip install 'proctor\[{name}\]'"):
        asyncio.run(runtime("letters").check())


def test_what_we_call_of_modal_is_what_modal_has(
    monkeypatch: pytest.MonkeyPatch, served: Serve, certificate: ssl.SSLContext
) -> None:
    real = pytest.importorskip("modal")
    options = {"cpu": 1, "memory": 512, "gpu": "T4", "region": "eu", "allowed_domains": ["a.example"]}
    calls, _ = play_on_modal(monkeypatch, served, certificate, **options)

    for path, args, settings in calls:
        owner, _, name = path.partition(".")
        function = getattr(getattr(real, owner), name)
        instance = (None,) if name in ("tunnels", "poll", "terminate") else ()
        inspect.signature(getattr(function, "aio", function)).bind(*instance, *args, **settings)
    for error in ("Error", "AuthError", "InvalidError"):
        assert issubclass(getattr(real.exception, error), real.exception.Error)
    assert isinstance(
        inspect.getattr_static(importlib.import_module("modal._tunnel").Tunnel, "tls_socket"), property
    )


def test_what_we_call_of_daytona_is_what_daytona_has(monkeypatch: pytest.MonkeyPatch, served: Serve) -> None:
    real = pytest.importorskip("daytona")
    process = importlib.import_module("daytona._async.process")
    snapshots = importlib.import_module("daytona._async.snapshot")
    homes = {"AsyncProcess": process.AsyncProcess, "AsyncSnapshotService": snapshots.AsyncSnapshotService}
    calls, _ = play_on_daytona(monkeypatch, served)

    for path, args, settings in calls:
        owner, _, name = path.partition(".")
        home = homes.get(owner) or getattr(real, owner)
        if name:
            inspect.signature(getattr(home, name)).bind(None, *args, **settings)
        else:
            home(*args, **settings) if owner != "AsyncDaytona" else inspect.signature(home).bind()
    assert issubclass(real.DaytonaNotFoundError, real.DaytonaError)
