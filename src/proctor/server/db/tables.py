"""Every table. Times are seconds since 1970, money is millionths of a dollar, both as numbers.

A change in `schema/` needs a migration; a test compares the two. Knows nothing of what the rows mean.
"""

from __future__ import annotations

from proctor.server.db.schema.audit import audit_entries
from proctor.server.db.schema.datasets import dataset_uploads, dataset_versions, datasets, run_datasets
from proctor.server.db.schema.hub import environments, roles, version_tasks, versions
from proctor.server.db.schema.ledger import accounts, calls, entries, holds, prices, reservations
from proctor.server.db.schema.metadata import metadata
from proctor.server.db.schema.people import (
    browser_sessions,
    login_codes,
    members,
    namespaces,
    teams,
    tokens,
    users,
)
from proctor.server.db.schema.runs import (
    event_segments,
    events,
    rollout_entries,
    rollouts,
    run_comments,
    run_labels,
    run_links,
    run_segments,
    runs,
)
from proctor.server.db.schema.sandboxes import sandboxes
from proctor.server.db.schema.secrets import (
    attempt_secrets,
    run_secrets,
    seals,
    secret_links,
    secrets,
    variables,
)
from proctor.server.db.schema.servers import (
    announcements,
    commit_marks,
    creations,
    leases,
    server_settings,
    servers,
)
from proctor.server.db.schema.sources import run_origins, source_builds, source_commits, source_syncs, sources
from proctor.server.db.schema.storage import files

__all__ = [
    "accounts",
    "announcements",
    "attempt_secrets",
    "audit_entries",
    "browser_sessions",
    "calls",
    "commit_marks",
    "creations",
    "dataset_uploads",
    "dataset_versions",
    "datasets",
    "entries",
    "environments",
    "event_segments",
    "events",
    "files",
    "holds",
    "leases",
    "login_codes",
    "members",
    "metadata",
    "namespaces",
    "prices",
    "reservations",
    "roles",
    "rollout_entries",
    "rollouts",
    "run_comments",
    "run_datasets",
    "run_labels",
    "run_links",
    "run_origins",
    "run_secrets",
    "run_segments",
    "runs",
    "sandboxes",
    "seals",
    "secret_links",
    "secrets",
    "server_settings",
    "servers",
    "source_builds",
    "source_commits",
    "source_syncs",
    "sources",
    "teams",
    "tokens",
    "users",
    "variables",
    "version_tasks",
    "versions",
]
