"""Sandboxes and instances that a run may request from its server, and environments served there."""

from __future__ import annotations

from typing import Literal

import msgspec

from proctor.api.bounds import FileContent, Files, Name, Sentence, Variables, Word, Words

SandboxStatus = Literal["starting", "ready", "failed", "ended"]
Backend = Literal["bubblewrap", "docker"]


class NewSandbox(msgspec.Struct, frozen=True, kw_only=True):
    backend: Backend | None = None
    """None: the server's default."""
    image: Name | None = None
    """Of a container; only for docker."""
    memory_mb: int | None = None
    timeout_minutes: int = 60


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    run: str | None = None
    backend: Backend
    status: SandboxStatus
    message: str = ""
    """Why it failed or ended."""
    created_at: float
    expires_at: float


class Exec(msgspec.Struct, frozen=True, kw_only=True):
    command: Word | Words
    """A text for `sh`, or a list of arguments."""
    stdin: FileContent = ""
    variables: Variables = {}
    timeout_seconds: float = 300.0


class ExecResult(msgspec.Struct, frozen=True, kw_only=True):
    code: int | None
    """None: it was ended because it took too long."""
    output: str = ""


class NewInstance(msgspec.Struct, frozen=True, kw_only=True):
    """A longer-lived process with a port."""

    command: Words
    port: int
    """The port it listens on, inside."""
    backend: Backend | None = None
    image: Name | None = None
    variables: Variables = {}
    files: Files = {}
    """Texts by path, written before it starts."""
    memory_mb: int | None = None
    timeout_minutes: int = 60


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    run: str | None = None
    backend: Backend
    status: SandboxStatus
    message: str = ""
    """Why it failed or ended."""
    port: int
    url: str = ""
    """Where requests to its port are sent: a path under the server's address."""
    created_at: float
    expires_at: float


class NewServedSession(msgspec.Struct, frozen=True, kw_only=True):
    """An environment to serve for one rollout."""

    environment: Name
    task: Sentence = ""
    """For people who look at the list; the whole environment is served."""


class ServedSession(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    environment: str
    status: SandboxStatus
    message: str = ""
    token: str | None = None
    """The token for its channel, once it is ready."""
    created_at: float
    expires_at: float
