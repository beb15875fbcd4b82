"""The settings of a server: what the operator decides once.

Knows nothing of what the parts do with it.
"""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec

from proctor.api.hub import RunPolicy
from proctor.isolation.limits import RunLimits
from proctor.support.metrics_address import MetricsAddress
from proctor.support.structured_logs import LogFormat

MEGABYTE = 2**20
ANY_HOST = ("0.0.0.0", "::")


class SandboxLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What sandboxes, instances and served environments may use."""

    at_once: int = 16
    """Per run, or per user."""
    memory_mb: int = 2048
    """Per sandbox; in bubblewrap, per process."""
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
    """None: as many as the process's file descriptors allow."""
    per_address: int = 500
    """From one address; this machine and trusted proxies are exempt."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of reverse proxies."""
    head_seconds: float = 10.0
    """For a request's head, counted from the opening of the connection or the previous answer."""
    body_seconds: float = 20.0
    """For a request's body, on top of the time it takes at the slowest rate."""
    bytes_per_second: int = 4096
    """The slowest rate at which bodies are sent and answers are read."""
    stalled_seconds: float = 60.0
    """How long an answer may be read more slowly than that."""


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """What one user, and one run, may have on the server."""

    pending_runs_per_user: int = 100
    streams_per_user: int = 100
    """Open event streams and downloads of rows at once; per run as well."""
    run_storage_mb: int = 2048
    """Rows and log lines of one run."""
    user_storage_mb: int = 51_200
    """Pushed versions, datasets and runs of one user."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of `proctor server`."""

    data: Path
    """Holds everything the server stores: database, pushed files, keys."""
    host: str = "127.0.0.1"
    port: int = 8700
    database: str | None = None
    """None: a SQLite file in the data folder."""
    files: Path | None = None
    """Holds pushed files and uploads, for servers on one database to share; None: the data folder."""
    drain_seconds: float = 0.0
    """How long to answer requests after SIGTERM, while `/ready` says that the server is about to end."""
    peer_url: str | None = None
    """How the other servers on the database reach this one, if not by host and port."""
    storage: str = "folder"
    """Where files are kept: `folder` for the data folder, or s3://BUCKET/PREFIX."""
    storage_public_endpoint: str | None = None
    """The address by which clients reach the object store, if it is not the server's own."""
    signed_downloads: bool = True
    """Let clients fetch large files from the object store itself."""
    storage_cache_mb: int = 10_240
    """Copies of the object store's files in the data folder, for what needs them on a disk."""
    public_url: str | None = None
    """The address others use, if it is not host and port."""
    runs_at_once: int = 2
    """How many hosted runs to play on this machine at once; 0 leaves them to other hosts."""
    runs_per_user: int | None = None
    run_policy: RunPolicy = "readers"
    """Who may run environments that have no policy of their own."""
    limits: RunLimits = RunLimits()
    sandboxes: SandboxLimits = SandboxLimits()
    allow_no_sandbox: bool = False
    """Run environments without a sandbox if bubblewrap is missing."""
    direct_hosts: tuple[str, ...] = ()
    """Hosts from which wheels may be fetched by direct reference."""
    main_index: str | None = None
    """Index whose names cannot be pushed: its address, or `pip` for those pip is configured with."""
    allowed_names: tuple[str, ...] = ()
    """Names that may be pushed although the main index has them."""
    endpoints: Path | None = None
    """A registry of endpoints, as docs/endpoints.md describes; models are called there with the keys in the
    server's environment."""
    offer_local: bool = True
    """Offer the embedded model if it is installed; it shares the server's CPU."""
    allowed_endpoint_hosts: tuple[str, ...] = ()
    """Hosts that runs may name as their own endpoint although they are not on the public internet."""
    source_hosts: tuple[str, ...] = ()
    """Hosts of git repositories that are not on the public internet."""
    source_paths: tuple[Path, ...] = ()
    """Folders on this machine whose git repositories users may add as sources."""
    fetch_seconds: float = 300.0
    """How long fetching one commit of a repository may take."""
    fetch_disk_mb: int = 2048
    """How much space one commit of a repository may take."""
    forget_secrets: bool = False
    """Delete every secret that another key has sealed, instead of refusing to start."""
    default_balance_usd: float | None = None
    """What new users can spend, while teams start with nothing; None for no limit."""
    metrics: MetricsAddress | None = None
    """Where to answer `GET /metrics`; None for nowhere."""
    log_format: LogFormat = "text"
    connections: ConnectionLimits = ConnectionLimits()
    quotas: Quotas = Quotas()
    largest_body: int = 64 * MEGABYTE
    """For requests to models."""
    largest_report: int = 16 * MEGABYTE
    """For one report of a run: rows, log lines, metadata."""
    largest_request: int = MEGABYTE
    """For every other JSON request."""
    largest_push: int = 256 * MEGABYTE
    largest_dataset: int = 5 * 1024 * MEGABYTE
    lease_seconds: float = 30.0
    """A run whose host is silent for this long is given to another."""
    most_crashes: int = 3
    """Crashes in a row without a single new rollout, after which a run has failed."""

    @property
    def files_folder(self) -> Path:
        return self.files or self.data

    @property
    def url(self) -> str:
        """For clients elsewhere."""
        return (self.public_url or self.own_url).rstrip("/")

    @property
    def url_for_peers(self) -> str:
        """For the other servers on the database."""
        if self.peer_url is None and self.host in ANY_HOST:
            return f"http://{socket.getfqdn()}:{self.port}"
        return (self.peer_url or self.own_url).rstrip("/")

    @property
    def own_url(self) -> str:
        """For this machine."""
        host = "127.0.0.1" if self.host in ANY_HOST else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
