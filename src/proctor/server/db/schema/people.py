"""Users, teams, and how they log in."""

from __future__ import annotations

from sqlalchemy import JSON, Boolean, Column, Double, ForeignKey, Index, Integer, LargeBinary, Table, Text

from proctor.server.db.schema.metadata import metadata

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
    Column("kind", Text, nullable=False),  # user | first | run | host | delegate
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
