"""What is due of each account is found without a look at the others'."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    waiting = sa.text("dead_at IS NULL")
    op.create_index(
        "deliveries_by_account_and_time", "deliveries", ["account", "next_at"], unique=False, sqlite_where=waiting, postgresql_where=waiting
    )
