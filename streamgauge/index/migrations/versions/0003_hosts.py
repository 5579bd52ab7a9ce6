"""Extends the primary keys by series and time: hosts that share a database may give two runs the same id."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
_KEYS = {
    "points": ("run_id", "number", "series_key", "at"),
    "judgements": ("run_id", "number", "series_key", "changed_at"),
}
_INDEXES = {"points": ("series_key", "at"), "judgements": ("series_key", "changed_at")}


def upgrade() -> None:
    for table, key in _KEYS.items():
        _key(table, key)


def downgrade() -> None:
    for table in _KEYS:
        _key(table, ("run_id", "number"))


def _key(table: str, key: tuple[str, ...]) -> None:
    bind = op.get_bind()
    if bind.dialect.name == "postgresql":
        op.drop_constraint(f"{table}_pkey", table)
        op.create_primary_key(f"{table}_pkey", table, list(key))
        return
    old = sa.Table(table, sa.MetaData(), autoload_with=bind, resolve_fks=False)  # SQLite changes no key in place
    names = [column.name for column in old.columns]
    op.create_table(
        f"{table}_new",
        *(sa.Column(c.name, c.type, *_references(c), primary_key=c.name in key, nullable=c.nullable)
          for c in old.columns),
    )  # fmt: skip
    fields = ", ".join(names)
    op.execute(f"INSERT INTO {table}_new ({fields}) SELECT {fields} FROM {table}")
    op.drop_table(table)
    op.rename_table(f"{table}_new", table)
    op.create_index(f"{table}_of_series", table, list(_INDEXES[table]))


def _references(column: sa.Column) -> list[sa.ForeignKey]:  # type: ignore[type-arg]
    return [sa.ForeignKey("series.key")] if column.foreign_keys else []
