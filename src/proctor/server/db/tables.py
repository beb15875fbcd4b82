"""Every table. Times are seconds since 1970, money is millionths of a dollar, both as numbers.

A change here needs a migration beside it; a test compares the two. Knows nothing of what the rows mean.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# People

users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, ForeignKey("namespaces.name"), nullable=False, unique=True),
    Column("is_admin", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("disabled_at", Double),
)
teams = Table(
    "teams",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, ForeignKey("namespaces.name"), nullable=False, unique=True),
    Column("created_at", Double, nullable=False),
)
namespaces = Table(
    "namespaces",
    metadata,
    Column("name", Text, primary_key=True),
    Column("kind", Text, nullable=False),  # user | team
    comment="Users and teams share their names, since both own environments.",
)
members = Table(
    "members",
    metadata,
    Column("team", Text, ForeignKey("teams.name", ondelete="CASCADE"), primary_key=True),
    Column("user", Text, ForeignKey("users.name", ondelete="CASCADE"), primary_key=True),
    Column("role", Text, nullable=False),
)
tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),  # user | first | run | host
    Column("secret_hash", LargeBinary, nullable=False),
    Column("user", Text, ForeignKey("users.name", ondelete="CASCADE")),
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE")),
    Column("attempt", Integer),
    Column("name", Text, nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("last_used_at", Double),
    Column("revoked_at", Double),
    Column("host_key_hash", LargeBinary),  # of the one host that a host's token is valid for
)
Index("ix_tokens_user", tokens.c.user)
Index("ix_tokens_run_id", tokens.c.run_id)
browser_sessions = Table(
    "browser_sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("secret_hash", LargeBinary, nullable=False),
    Column("token_id", Text, ForeignKey("tokens.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
)
Index("ix_browser_sessions_token_id", browser_sessions.c.token_id)
login_codes = Table(
    "login_codes",
    metadata,
    Column("code_hash", LargeBinary, primary_key=True),
    Column("token_id", Text, ForeignKey("tokens.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("used_at", Double),
)
Index("ix_login_codes_token_id", login_codes.c.token_id)
creations = Table(
    "creations",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("response", LargeBinary, nullable=False),  # sealed, with a hash of the request
    Column("at", Double, nullable=False),
    comment="What creates with an idempotency key were answered, so that the same is answered again.",
)

commit_marks = Table(
    "commit_marks",
    metadata,
    Column("id", Text, primary_key=True),  # of a connection
    Column("number", BigInteger, nullable=False),
    Column("at", Double, nullable=False),
    comment="The last transaction of each connection to PostgreSQL that changed something.",
)
server_settings = Table(
    "server_settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
    comment="What the operator chose at the last start, where rows depend on it.",
)

# The hub

environments = Table(
    "environments",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, ForeignKey("namespaces.name"), nullable=False),
    Column("name", Text, nullable=False),
    Column("visibility", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("tags", JSON, nullable=False),
    Column("forked_from", Text),
    Column("run_policy", Text),  # none: the server's
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    UniqueConstraint("owner", "name"),
)
roles = Table(
    "roles",
    metadata,
    Column("environment_id", Text, ForeignKey("environments.id", ondelete="CASCADE"), primary_key=True),
    Column("holder", Text, ForeignKey("namespaces.name", ondelete="CASCADE"), primary_key=True),
    Column("role", Text, nullable=False),
)
versions = Table(
    "versions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("environment_id", Text, ForeignKey("environments.id", ondelete="CASCADE"), nullable=False),
    Column("version", Text, nullable=False),
    Column("number", Integer, nullable=False),  # in the order of pushes
    Column("content_hash", Text, nullable=False),
    Column("wheel_name", Text, nullable=False),
    Column("wheel_sha256", Text, nullable=False),
    Column("wheel_size", BigInteger, nullable=False),
    Column("source_sha256", Text, nullable=False),
    Column("source_size", BigInteger, nullable=False),
    Column("requires_python", Text, nullable=False),
    Column("dependencies", JSON, nullable=False),
    Column("secrets", JSON, nullable=False),
    Column("files", JSON, nullable=False),  # [[path, size], …]
    Column("metadata_text", Text, nullable=False),  # the wheel's METADATA, for PEP 658
    Column("pushed_by", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("check_status", Text, nullable=False),
    Column("check_message", Text, nullable=False),
    Column("check_log", Text, nullable=False),
    Column("check_tasks", Integer),
    Column("check_seconds", Double),
    Column("check_facts", JSON, nullable=False),  # sizes of prompts, for estimates
    Column("check_lease_until", Double),
    Column("check_host", Text),  # the token of the host that checks it
    Column("check_leases", Integer, nullable=False, default=0),  # how often it was leased
    Column("lock", Text),
    UniqueConstraint("environment_id", "version"),
)
version_tasks = Table(
    "version_tasks",
    metadata,
    Column("version_id", Text, ForeignKey("versions.id", ondelete="CASCADE"), primary_key=True),
    Column("place", Integer, primary_key=True),  # in the environment's order
    Column("slug", Text, nullable=False),
    Column("task", LargeBinary, nullable=False),  # JSON of a TaskInfo
)

# Runs

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("owner", Text, ForeignKey("users.name"), nullable=False),
    Column("team", Text, ForeignKey("teams.name")),
    Column("environment_id", Text, ForeignKey("environments.id", ondelete="SET NULL")),
    Column("version_id", Text, ForeignKey("versions.id", ondelete="SET NULL")),
    Column("environment", Text, nullable=False),
    Column("version", Text),
    Column("content_hash", Text),
    Column("model", Text, nullable=False),
    Column("client_run_id", Text),
    Column("settings", JSON, nullable=False),
    Column("permissions", JSON, nullable=False),
    Column("visibility", Text, nullable=False, server_default="private"),
    Column("timeout_minutes", Integer),
    Column("max_cost", BigInteger),
    Column("status", Text, nullable=False),
    Column("cause", JSON),
    Column("planned", Integer),
    Column("attempt", Integer, nullable=False),
    Column("crashes", Integer, nullable=False),
    Column("rows_at_crash", Integer, nullable=False),
    Column("host", Text),
    Column("lease_until", Double),
    Column("deadline_at", Double),
    Column("last_batch", Integer, nullable=False),
    Column("last_seq", Integer, nullable=False),
    Column("settled", Integer, nullable=False),
    Column("scored", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("reward_sum", Double, nullable=False),
    Column("row_bytes", BigInteger, nullable=False, server_default="0"),
    Column("log_bytes", BigInteger, nullable=False, server_default="0"),
    Column("cost", BigInteger),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("summary", JSON),
    Column("created_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("score", JSON(none_as_null=True)),  # of the summary, for lists
    Column("suite", Text),
    Column("tags", JSON(none_as_null=True)),
    UniqueConstraint("owner", "client_run_id"),
)
Index("ix_runs_status", runs.c.status)
Index("ix_runs_owner", runs.c.owner, runs.c.started_at)
Index("ix_runs_created_at", runs.c.created_at, runs.c.id)
Index("ix_runs_environment_id", runs.c.environment_id)
Index("ix_runs_suite", runs.c.suite)
datasets = Table(
    "datasets",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, ForeignKey("namespaces.name"), nullable=False),
    Column("name", Text, nullable=False),
    Column("visibility", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    UniqueConstraint("owner", "name"),
)
dataset_versions = Table(
    "dataset_versions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("dataset_id", Text, ForeignKey("datasets.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),  # in the order of pushes; the highest is the latest
    Column("sha256", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("format", Text, nullable=False),
    Column("rows", BigInteger),  # none: not counted
    Column("columns", JSON, nullable=False),
    Column("pushed_by", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("pushed_at", Double, nullable=False),
    UniqueConstraint("dataset_id", "sha256"),
)
Index("ix_dataset_versions_sha256", dataset_versions.c.sha256)
Index("ix_dataset_versions_pushed_by", dataset_versions.c.pushed_by)
run_datasets = Table(
    "run_datasets",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("version_id", Text, ForeignKey("dataset_versions.id", ondelete="CASCADE"), primary_key=True),
    comment="The versions that a run's settings name.",
)
Index("ix_run_datasets_version_id", run_datasets.c.version_id)
run_links = Table(
    "run_links",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("link_hash", LargeBinary, nullable=False),
    Column("sealed", LargeBinary, nullable=False),  # the link, to show it again
    Column("created_at", Double, nullable=False),
)
rollouts = Table(
    "rollouts",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("task", Text, primary_key=True),  # JSON: the task "1" is not the task 1
    Column("number", Integer, primary_key=True),
    Column("place", Integer, nullable=False),  # in the order of arrival, for cursors
    Column("settled", Boolean, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("reward", Double),
    Column("seconds", Double, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("row", LargeBinary, nullable=False),  # zlib
)
Index("ix_rollouts_place", rollouts.c.run_id, rollouts.c.place)
rollout_entries = Table(
    "rollout_entries",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("place", Integer, primary_key=True),  # of the rollout
    Column("entry", LargeBinary, nullable=False),  # msgpack
    comment="What lists and reports read of a rollout, so that they need not read its row.",
)
run_labels = Table(
    "run_labels",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("task", Text, primary_key=True),  # JSON, as in rollouts
    Column("number", Integer, primary_key=True),
    Column("person", Text, ForeignKey("users.name"), primary_key=True),
    Column("score", Double),  # none: skipped
    Column("note", Text, nullable=False),
    Column("at", Double, nullable=False),
    comment="What people say of rollouts.",
)
Index("ix_run_labels_person", run_labels.c.person)
events = Table(
    "events",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("event", LargeBinary, nullable=False),  # JSON of a RunEvent
)
run_secrets = Table(
    "run_secrets",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
)
attempt_secrets = Table(
    "attempt_secrets",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),  # JSON: values by name
    comment="What each attempt was given, so that none of it is read in what the run says.",
)

# Repositories

sources = Table(
    "sources",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, ForeignKey("namespaces.name", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("repository", Text, nullable=False),  # the same for every spelling of the address
    Column("sealed", LargeBinary, nullable=False),  # JSON: credentials, and the webhook's secret
    Column("has_credentials", Boolean, nullable=False),
    Column("known_hosts", Text, nullable=False),  # of its ssh server, as seen first
    Column("branch", Text, nullable=False),  # this and the following: as fetched last
    Column("commit_sha", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("committed_at", Double),
    Column("rollouts", JSON, nullable=False),
    Column("problem", Text, nullable=False),
    Column("synced_at", Double),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("owner", "name"),
)
source_builds = Table(
    "source_builds",
    metadata,
    Column("source_id", Text, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True),
    Column("commit_sha", Text, primary_key=True),
    Column("rollout", Text, primary_key=True),
    Column("version_id", Text, ForeignKey("versions.id", ondelete="CASCADE"), nullable=False),
    Column("files", JSON, nullable=False),
    Column("author", Text, nullable=False),
    Column("subject", Text, nullable=False),
)
run_origins = Table(
    "run_origins",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("source", Text, nullable=False),
    Column("repository", Text, nullable=False),
    Column("rollout", Text, nullable=False),
    Column("entrypoint", Text, nullable=False),
    Column("commit_sha", Text, nullable=False),
    Column("branch", Text, nullable=False),
    Column("dataset", JSON, nullable=False),
    Column("config_hash", Text, nullable=False),
    Column("recipe", JSON, nullable=False),
)
Index("ix_run_origins_repository", run_origins.c.repository)
Index("ix_run_origins_config_hash", run_origins.c.config_hash)

# Secrets

secrets = Table(
    "secrets",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, ForeignKey("namespaces.name", ondelete="CASCADE")),
    Column("environment_id", Text, ForeignKey("environments.id", ondelete="CASCADE")),
    Column("name", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("description", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    UniqueConstraint("owner", "name"),
    UniqueConstraint("environment_id", "name"),
)
secret_links = Table(
    "secret_links",
    metadata,
    Column("environment_id", Text, ForeignKey("environments.id", ondelete="CASCADE"), primary_key=True),
    Column("secret_id", Text, ForeignKey("secrets.id", ondelete="CASCADE"), primary_key=True),
)
seals = Table(
    "seals",
    metadata,
    Column("name", Text, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("at", Double, nullable=False),
    comment="A value that the server's key has sealed, to know the key again.",
)
variables = Table(
    "variables",
    metadata,
    Column("id", Text, primary_key=True),
    Column("environment_id", Text, ForeignKey("environments.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    UniqueConstraint("environment_id", "name"),
)

# Money

accounts = Table(
    "accounts",
    metadata,
    Column("owner", Text, ForeignKey("namespaces.name"), primary_key=True),
    Column("balance", BigInteger),  # none: no limit
    Column("spent", BigInteger, nullable=False),
)
entries = Table(
    "entries",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, ForeignKey("namespaces.name"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("run_id", Text),
    Column("reference", Text, nullable=False, unique=True),  # so that nothing is booked twice
    Column("note", Text, nullable=False),
    Column("at", Double, nullable=False),
)
Index("ix_entries_owner", entries.c.owner, entries.c.at)
holds = Table(
    "holds",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("owner", Text, ForeignKey("namespaces.name"), nullable=False),
    Column("amount", BigInteger, nullable=False),
)
Index("ix_holds_owner", holds.c.owner)
reservations = Table(
    "reservations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, ForeignKey("namespaces.name"), nullable=False),  # the payer
    Column("run_id", Text),
    Column("amount", BigInteger, nullable=False),
    Column("holder", Text, nullable=False),  # the process that made the call
    Column("expires_at", Double, nullable=False),
    comment="The most that calls under way can cost.",
)
Index("ix_reservations_owner", reservations.c.owner)
Index("ix_reservations_holder", reservations.c.holder)
calls = Table(
    "calls",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", Double, nullable=False),
    Column("owner", Text, nullable=False),  # the payer
    Column("user", Text, nullable=False),
    Column("run_id", Text),
    Column("model", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("cost", BigInteger),
    Column("is_estimate", Boolean, nullable=False, server_default=false()),  # the provider reported no usage
    comment="Answered requests of the inference gateway.",
)
Index("ix_calls_run_id", calls.c.run_id)
Index("ix_calls_owner", calls.c.owner, calls.c.at)
prices = Table(
    "prices",
    metadata,
    Column("model", Text, primary_key=True),
    Column("input", Double, nullable=False),  # dollars per million tokens
    Column("output", Double, nullable=False),
    Column("cached", Double),
    comment="Instead of the list price.",
)

# Sandboxes, instances and served environments

places = Table(
    "places",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),  # sandbox | instance | session
    Column("owner", Text, nullable=False),
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE")),
    Column("server", Text, nullable=False),  # that created it
    Column("backend", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("spec", JSON, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("ended_at", Double),
)
Index("ix_places_run_id", places.c.run_id)
