"""Serve workspaces over ssh, for agents that bring a client of their own.

One server for all rollouts of a process, on loopback; each rollout has a user and a key of its own. Knows
nothing of who connects, or of what a session runs.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

from proctor.errors import EnvError, InfraError
from proctor.isolation.command_line import WORKSPACE_PATH
from proctor.workspaces.folder import RolloutFolder
from proctor.workspaces.spec import WorkspaceSpec
from proctor.workspaces.ssh import asyncssh
from proctor.workspaces.ssh_session import serve_session, session_command

ADDRESS = "127.0.0.1"
REFUSED = 126
SFTP_VERSION = 3

Process = asyncssh.SSHServerProcess[bytes]


FindFolder = Callable[[], RolloutFolder | None]
"""The folder; None before its task is started, and after it."""


class SshUser(NamedTuple):
    """The folder that a user name stands for, and its key."""

    find: FindFolder
    public_key: bytes


class SshServer:
    """The ssh server for the rollouts of this process."""

    def __init__(self) -> None:
        self._guests: dict[str, SshUser] = {}
        self._connections: dict[str, set[asyncssh.SSHServerConnection]] = {}
        self._listening: asyncssh.SSHAcceptor | None = None
        self._host_key = asyncssh.generate_private_key("ssh-ed25519")

    @property
    def url(self) -> str:
        if self._listening is None:
            raise EnvError("the ssh server has not been started")
        return f"ssh://{ADDRESS}:{self.port}"

    @property
    def port(self) -> int:
        return 0 if self._listening is None else self._listening.get_port()

    async def start(self) -> None:
        try:
            self._listening = await asyncssh.listen(
                ADDRESS,
                0,
                server_host_keys=[self._host_key],
                server_factory=lambda: SshAuthenticator(self),
                encoding=None,
                line_editor=False,
                agent_forwarding=False,
                x11_forwarding=False,
                gss_host=None,
            )
        except OSError as error:
            raise InfraError(f"cannot start an ssh server on {ADDRESS}: {error.strerror}") from error

    def add(self, find: FindFolder, spec: WorkspaceSpec) -> dict[str, Any]:
        """Open a rollout's folder to ssh; returns the content of its `ssh/2` binding."""
        user, key = f"rollout-{secrets.token_hex(8)}", asyncssh.generate_private_key("ssh-ed25519")
        self._guests[user] = SshUser(find, key.public_data)
        params = {
            "user": user,
            "host_pubkey": self._host_key.export_public_key("openssh").decode().strip(),
            "client_key": key.export_private_key("openssh").decode(),
            "shell": "bash",
            "isolation": spec.isolation,
        }
        return {**params, "cwd": WORKSPACE_PATH} if spec.isolation == "bwrap" else params

    def remove(self, user: str) -> None:
        """Close it again, and disconnect its sessions."""
        self._guests.pop(user, None)
        for connection in self._connections.pop(user, set()):
            connection.abort()

    async def close(self) -> None:
        for user in [*self._guests]:
            self.remove(user)
        if self._listening is not None:
            self._listening.close()
            await self._listening.wait_closed()
            self._listening = None

    def guest(self, user: str) -> SshUser | None:
        return self._guests.get(user)

    def add_connection(self, user: str, connection: asyncssh.SSHServerConnection) -> None:
        self._connections.setdefault(user, set()).add(connection)

    def remove_connection(self, user: str, connection: asyncssh.SSHServerConnection) -> None:
        self._connections.get(user, set()).discard(connection)

    async def serve(self, process: Process) -> None:
        guest = self.guest(process.get_extra_info("username"))
        folder = None if guest is None else guest.find()
        if folder is None:
            process.stderr.write(b"no task is started; its workspace comes with it\n")
            process.exit(REFUSED)
            return
        try:
            process.exit(await serve_session(process, folder, session_command(process, folder)))
        except EnvError as error:
            process.stderr.write(f"{error}\n".encode())
            process.exit(REFUSED)
        except (OSError, asyncssh.Error):
            process.close()  # the session has ended


class SshAuthenticator(asyncssh.SSHServer):
    """Accepts a rollout's user with that rollout's key. Nothing is forwarded."""

    def __init__(self, server: SshServer) -> None:
        self._server = server
        self._user = ""

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._server.remove_connection(self._user, self._connection)

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        guest = self._server.guest(username)
        return guest is not None and secrets.compare_digest(guest.public_key, key.public_data)

    def auth_completed(self) -> None:
        self._user = self._connection.get_extra_info("username")
        self._server.add_connection(self._user, self._connection)

    def session_requested(self) -> InsideSession:
        return InsideSession(self._server.serve, None, SFTP_VERSION, allow_scp=False)


class InsideSession(Process):
    """A session whose SFTP server also runs in the sandbox; asyncssh would serve it outside."""

    def subsystem_requested(self, subsystem: str) -> bool:
        return subsystem == "sftp"

    def session_started(self) -> None:
        channel = self.channel
        streams = (
            asyncssh.SSHReader[bytes](self, channel),
            asyncssh.SSHWriter[bytes](self, channel),
            asyncssh.SSHWriter[bytes](self, channel, asyncssh.EXTENDED_DATA_STDERR),
        )
        self._serving = asyncio.create_task(self._run(*streams))

    async def _run(self, *streams: Any) -> None:
        serving = self._start_process(*streams)
        if serving is not None:
            await serving
