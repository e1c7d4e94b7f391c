"""Run by Alembic, on a connection that `migrate.upgrade` gives it: no configuration file, no logging set up, one transaction."""

from alembic import context

from everforge.store.sql.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
