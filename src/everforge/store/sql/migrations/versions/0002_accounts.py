"""Accounts, tokens, invitations; names by account; expiry; keys of requests; sums of usage."""

# pyright: reportUnknownArgumentType=false

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    change_machines()
    create_accounts()
    create_keys_and_usage()


def change_machines() -> None:
    op.add_column("machines", sa.Column("expires_at", sa.Double(), nullable=True))
    op.drop_index("machines_by_name", table_name="machines")
    create_partial_index("machines_by_name", "machines", ["account", "name"], "deleted_at IS NULL", unique=True)
    create_partial_index("machines_by_expiry", "machines", ["expires_at"], "expires_at IS NOT NULL AND deleted_at IS NULL")
    op.create_index("machines_by_state", "machines", ["account", "residence", "created_at", "id"], unique=False)


def create_accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("same_name", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("same_email", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("deleted_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    create_partial_index("accounts_by_name", "accounts", ["same_name"], "deleted_at IS NULL", unique=True)
    create_partial_index("accounts_by_email", "accounts", ["same_email"], "deleted_at IS NULL AND same_email IS NOT NULL", unique=True)
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("last_used_at", sa.Double(), nullable=True),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sqlite_with_rowid=False,
    )
    op.create_index("tokens_by_account", "tokens", ["account", "created_at", "id"], unique=False)
    op.create_table(
        "invitations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("used_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sqlite_with_rowid=False,
    )


def create_keys_and_usage() -> None:
    op.create_table(
        "keys",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("made", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("account", "route", "key"),
        sqlite_with_rowid=False,
    )
    op.create_index("keys_by_time", "keys", ["created_at"], unique=False)
    op.create_table(
        "usage",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("instructions", sa.BigInteger(), nullable=False),
        sa.Column("runtime_ms", sa.BigInteger(), nullable=False),
        sa.Column("disk_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account"),
        sqlite_with_rowid=False,
    )
    # What ran before nobody counted; what lies on the disk is known.
    op.execute(
        "INSERT INTO usage SELECT machines.account, 0, 0, SUM(points.size_bytes)"
        " FROM points JOIN machines ON machines.id = points.machine GROUP BY machines.account"
    )


def create_partial_index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    op.create_index(name, table, columns, unique=unique, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
