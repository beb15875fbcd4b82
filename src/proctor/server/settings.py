"""How a server is set up: what the operator decides once.

Knows nothing of what the parts do with it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from proctor.isolation.limits import RunLimits

MEGABYTE = 2**20


class SandboxLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What sandboxes, instances and served environments may use."""

    at_once: int = 16
    """For one run, or one user."""
    memory_mb: int = 2048
    """Of one, at most; in bubblewrap, of one process."""
    processes: int = 256
    disk_mb: int = 2048
    transfer_mb: int = 64
    """Of one file that is read or written."""
    longest_minutes: int = 60
    start_seconds: float = 120.0
    image: str | None = None
    """Of containers whose run names none."""


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many connections there may be, and how long each may keep the server waiting."""

    in_all: int | None = None
    """None: as many as the descriptors of the process allow."""
    per_address: int = 500
    """From one address; this machine and trusted proxies are not counted."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks through which others come."""
    head_seconds: float = 10.0
    """For a request's head, from the opening of the connection or the answer before."""
    body_seconds: float = 20.0
    """For a request's body, besides the time that it takes at the slowest rate."""
    bytes_per_second: int = 4096
    """The slowest rate at which bodies are sent and answers are taken."""
    stalled_seconds: float = 60.0
    """How long an answer may be taken at less than that rate."""


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """What one user, and one run, may have on the server."""

    pending_runs_per_user: int = 100
    streams_per_user: int = 100
    """Event streams and downloads of rows that are open at once; of each run as well."""
    run_storage_mb: int = 2048
    """Rows and log lines of one run."""
    user_storage_mb: int = 51_200
    """Pushed versions and runs of one user."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything `proctor server` can be told."""

    data: Path
    """Folder of everything the server keeps: database, pushed files, keys."""
    host: str = "127.0.0.1"
    port: int = 8700
    database: str | None = None
    """None: a SQLite file in the data folder."""
    public_url: str | None = None
    """How others reach it, where that is not host and port."""
    runs_at_once: int = 2
    """Hosted runs that are played on this machine at the same time; 0: hosts elsewhere play them."""
    runs_per_user: int | None = None
    limits: RunLimits = RunLimits()
    places: SandboxLimits = SandboxLimits()
    allow_no_sandbox: bool = False
    """Run environments without walls where bubblewrap is not there."""
    direct_hosts: tuple[str, ...] = ()
    """Hosts from which wheels may be taken that a package names by their address."""
    main_index: str | None = None
    """Index whose names cannot be pushed: its address, or `pip` for those pip is configured with."""
    allowed_names: tuple[str, ...] = ()
    """Names that may be pushed although the main index has them."""
    endpoints: Path | None = None
    """A registry of endpoints, as docs/endpoints.md describes; models are asked there with the keys of the
    server's environment."""
    offer_local: bool = True
    """Offer the embedded model where it is installed; it shares the server's processor."""
    allowed_endpoint_hosts: tuple[str, ...] = ()
    """Hosts that runs may name as their own endpoint although they are not on the public internet."""
    forget_secrets: bool = False
    """Delete every secret that another key has sealed, instead of refusing to start."""
    default_balance_usd: float | None = None
    """What new users have to spend, while teams begin with nothing; None: nothing limits them."""
    connections: ConnectionLimits = ConnectionLimits()
    quotas: Quotas = Quotas()
    largest_body: int = 64 * MEGABYTE
    """Of requests to models."""
    largest_report: int = 16 * MEGABYTE
    """Of what is said of a run at once: rows, log lines, metadata."""
    largest_request: int = MEGABYTE
    """Of every other request that is JSON."""
    largest_push: int = 256 * MEGABYTE
    lease_seconds: float = 30.0
    """A run whose host is silent for so long is given to another."""
    most_crashes: int = 3
    """In a row without a single new rollout, after which a run has failed."""

    @property
    def url(self) -> str:
        """For others."""
        return (self.public_url or self.own_url).rstrip("/")

    @property
    def own_url(self) -> str:
        """On this machine."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
