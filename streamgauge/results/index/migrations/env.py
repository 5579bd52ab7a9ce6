"""Alembic's entry point: runs the migrations on the connection that the index hands over."""

from alembic import context

from streamgauge.results.index.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
