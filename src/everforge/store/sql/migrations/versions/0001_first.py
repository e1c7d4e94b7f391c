"""The first tables."""

# pyright: reportUnknownArgumentType=false

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "events",
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("width", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("instruction", sa.BigInteger(), nullable=True),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("frame", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("machine", "position"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "events_by_frame",
        "events",
        ["machine", "epoch", "frame"],
        unique=False,
        sqlite_where=sa.text("frame > 0"),
        postgresql_where=sa.text("frame > 0"),
    )
    op.create_index("events_by_instruction", "events", ["machine", "instruction", "kind", "position"], unique=False)
    op.create_index(
        "events_by_key",
        "events",
        ["machine", "key"],
        unique=False,
        sqlite_where=sa.text("key IS NOT NULL"),
        postgresql_where=sa.text("key IS NOT NULL"),
    )
    op.create_table(
        "machine_tags",
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("machine", "key"),
        sqlite_with_rowid=False,
    )
    op.create_index("machine_tags_by_account", "machine_tags", ["account", "key", "value", "created_at", "machine"], unique=False)
    op.create_index("machine_tags_by_value", "machine_tags", ["key", "value", "created_at", "machine"], unique=False)
    op.create_table(
        "machines",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("last_used_at", sa.Double(), nullable=False),
        sa.Column("residence", sa.Text(), nullable=False),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("image", sa.Text(), nullable=False),
        sa.Column("memory_mb", sa.BigInteger(), nullable=False),
        sa.Column("cpus", sa.Double(), nullable=False),
        sa.Column("disk_mb", sa.BigInteger(), nullable=False),
        sa.Column("processes", sa.BigInteger(), nullable=False),
        sa.Column("idle_seconds", sa.Double(), nullable=False),
        sa.Column("history", sa.Text(), nullable=False),
        sa.Column("durability", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("env", sa.Text(), nullable=False),
        sa.Column("sandbox", sa.Text(), nullable=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("head", sa.Text(), nullable=True),
        sa.Column("next_instruction", sa.BigInteger(), nullable=False),
        sa.Column("unsaved_from", sa.BigInteger(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("failed_wakes", sa.BigInteger(), nullable=False),
        sa.Column("notice", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("source_position", sa.BigInteger(), nullable=True),
        sa.Column("deleted_at", sa.Double(), nullable=True),
        sa.Column("position_floor", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("purged_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("machines_by_account", "machines", ["account", "created_at", "id"], unique=False)
    op.create_index(
        "machines_by_deletion",
        "machines",
        ["deleted_at"],
        unique=False,
        sqlite_where=sa.text("deleted_at IS NOT NULL"),
        postgresql_where=sa.text("deleted_at IS NOT NULL"),
    )
    op.create_index(
        "machines_by_head", "machines", ["head"], unique=False, sqlite_where=sa.text("head IS NOT NULL"), postgresql_where=sa.text("head IS NOT NULL")
    )
    op.create_index(
        "machines_by_name",
        "machines",
        ["name"],
        unique=True,
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    op.create_index(
        "machines_by_purge",
        "machines",
        ["purged_at"],
        unique=False,
        sqlite_where=sa.text("purged_at IS NOT NULL"),
        postgresql_where=sa.text("purged_at IS NOT NULL"),
    )
    op.create_index("machines_by_residence", "machines", ["residence", "created_at", "id"], unique=False)
    op.create_index(
        "machines_by_source",
        "machines",
        ["source"],
        unique=False,
        sqlite_where=sa.text("source IS NOT NULL"),
        postgresql_where=sa.text("source IS NOT NULL"),
    )
    op.create_index("machines_by_time", "machines", ["created_at", "id"], unique=False)
    op.create_table(
        "points",
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("snapshot", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("instruction", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("machine", "snapshot"),
        sqlite_with_rowid=False,
    )
    op.create_index("points_by_snapshot", "points", ["snapshot"], unique=False)
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("boot", sa.Text(), nullable=False),
        sa.Column("clean", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "unended",
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("instruction", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("machine", "instruction"),
        sqlite_with_rowid=False,
    )
