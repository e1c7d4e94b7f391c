"""Bring a database to the newest revision. The scripts are part of the package, so that an installed wheel needs nothing else."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from everforge.wire.errors import StoreDamaged

HEAD = "0007"  # the newest script in migrations/versions; a test holds it against Alembic's own answer
SCRIPTS = Path(__file__).with_name("migrations")


def revision(connection: sa.Connection) -> str | None:
    """What the database is at; None for a new one."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()


def upgrade(connection: sa.Connection) -> None:
    """In the caller's transaction, all or nothing."""
    found = revision(connection)
    if found == HEAD:
        return
    if found is not None and found > HEAD:
        raise StoreDamaged(f"the database is at revision {found}, and this version of Everforge knows none after {HEAD}: use a newer Everforge")
    from alembic import command  # a tenth of a second, and needed only here
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
