"""Datasets, their versions, and which of them runs use."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    create_datasets()
    create_dataset_versions()
    create_run_datasets()


def create_datasets() -> None:
    op.create_table(
        "datasets",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("visibility", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["owner"], ["namespaces.name"], name=op.f("fk_datasets_owner")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
        sa.UniqueConstraint("owner", "name", name=op.f("uq_datasets_owner_name")),
    )


def create_dataset_versions() -> None:
    op.create_table(
        "dataset_versions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=True),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("pushed_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("pushed_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_dataset_versions_dataset_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset_versions")),
        sa.UniqueConstraint("dataset_id", "sha256", name=op.f("uq_dataset_versions_dataset_id_sha256")),
    )
    op.create_index("ix_dataset_versions_pushed_by", "dataset_versions", ["pushed_by"])
    op.create_index("ix_dataset_versions_sha256", "dataset_versions", ["sha256"])


def create_run_datasets() -> None:
    op.create_table(
        "run_datasets",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("version_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_run_datasets_run_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["version_id"],
            ["dataset_versions.id"],
            name=op.f("fk_run_datasets_version_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run_id", "version_id", name=op.f("pk_run_datasets")),
        comment="The versions that a run's settings name.",
    )
    op.create_index("ix_run_datasets_version_id", "run_datasets", ["version_id"])
