"""Runs, their rollouts and events, and what people write about them."""

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
    Table,
    Text,
    UniqueConstraint,
)

from proctor.server.db.schema.metadata import metadata

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
    Column("note", Text, nullable=False, server_default=""),
    Column("revision", Integer, nullable=False, server_default="0"),  # of what people say of it
    Column("edited_at", Double),  # when the revision was made
    Column("editors", JSON(none_as_null=True)),  # who changed its name, note and tags last
    Column("rescored_from", Text),  # of the metadata, for lists
    Column("archived_at", Double),  # when its rows and its events were moved to the store
    Column("log_read_at", Double),  # when its events were last fetched from there
    UniqueConstraint("owner", "client_run_id"),
)
Index("ix_runs_status", runs.c.status)
Index("ix_runs_owner", runs.c.owner, runs.c.started_at)
Index("ix_runs_created_at", runs.c.created_at, runs.c.id)
Index("ix_runs_environment_id", runs.c.environment_id)
Index("ix_runs_suite", runs.c.suite)
Index("ix_runs_edited_at", runs.c.edited_at)
Index("ix_runs_rescored_from", runs.c.rescored_from)
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
    Column("row", LargeBinary, nullable=False),  # zlib; empty if it is in a segment
    Column("segment", Integer),  # this and the following: where the store has it
    Column("segment_start", BigInteger),
    Column("segment_bytes", Integer),
)
Index("ix_rollouts_place", rollouts.c.run_id, rollouts.c.place)
run_segments = Table(
    "run_segments",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("sha256", Text, nullable=False),  # of the file that holds the rows, one after another
    Column("size", BigInteger, nullable=False),
    comment="Rows of runs that have ended, in the store.",
)
Index("ix_run_segments_sha256", run_segments.c.sha256)
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
run_comments = Table(
    "run_comments",
    metadata,
    Column("id", Text, primary_key=True),
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("task_key", Text),  # this and the next: of the rollout that it is about
    Column("number", Integer),
    Column("step", Integer),  # the event of the rollout
    Column("author", Text, ForeignKey("users.name"), nullable=False),
    Column("text", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("edited_at", Double),
    Column("deleted_at", Double),  # its text is gone, its place stays
    Column("deleted_by", Text),
)
Index("ix_run_comments_run_id", run_comments.c.run_id, run_comments.c.created_at, run_comments.c.id)
Index("ix_run_comments_author", run_comments.c.author)
events = Table(
    "events",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("event", LargeBinary, nullable=False),  # JSON of a RunEvent
)
event_segments = Table(
    "event_segments",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("first_seq", Integer, primary_key=True),
    Column("last_seq", Integer, nullable=False),
    Column("sha256", Text, nullable=False),  # of the file that holds the events: lines, zlib
    Column("size", BigInteger, nullable=False),
    comment="The first events of runs that have ended, in the store; the others are in the database.",
)
Index("ix_event_segments_sha256", event_segments.c.sha256)
