"""Alembic's entry: runs the migrations on the connection that the store hands over, inside its transaction."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="ledger_version",
    transactional_ddl=True,
)
context.run_migrations()
