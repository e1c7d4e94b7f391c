"""Quotas of accounts; egress and time awake in their usage."""

# pyright: reportUnknownArgumentType=false

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "quotas",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("machines", sa.BigInteger(), nullable=True),
        sa.Column("awake", sa.BigInteger(), nullable=True),
        sa.Column("memory_mb", sa.BigInteger(), nullable=True),
        sa.Column("disk_mb", sa.BigInteger(), nullable=True),
        sa.Column("requests_per_second", sa.Double(), nullable=True),
        sa.Column("egress_bytes_per_day", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("account"),
        sqlite_with_rowid=False,
    )
    op.add_column("usage", sa.Column("egress_bytes", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("usage", sa.Column("awake_ms", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("machines", sa.Column("awake_since", sa.Double(), nullable=True))
