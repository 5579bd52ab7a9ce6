"""Alembic migrations from each schema of the index to the next; they are never edited once released."""
