"""The index's tables. Keys come from the records alone, so a rebuilt index equals the live one, row by row."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, Integer, MetaData, String, Table, Text

#: raise it when a table changes: tables with another number are refused, and made again from the records
SCHEMA = "0006"
#: of tables that Alembic made, which kept their number in a table of its own
BEFORE = "0005"
metadata = MetaData()

schema = Table("schema_number", metadata, Column("number", String(8), primary_key=True))

series = Table(
    "series",
    metadata,
    Column("key", String(16), primary_key=True),  # hash of what is measured and the machine
    *(Column(name, String(200), nullable=False) for name in ("benchmark", "experiment", "workload", "system")),
    *(Column(name, String(200), nullable=False) for name in ("mode", "metric", "unit")),
    Column("machine", Text, nullable=False),  # JSON: host (if it has a label), cpu, cores
)

points = Table(
    "points",
    metadata,
    Column("run_id", String(200), primary_key=True),
    Column("number", Integer, primary_key=True),  # of the record in the run's results
    # the key's last two columns separate runs of one id, made by hosts that share the database
    Column("series_key", String(16), ForeignKey("series.key"), primary_key=True),
    Column("at", String(40), primary_key=True),  # ISO-8601, UTC
    Column("value", Float),
    Column("low", Float),
    Column("high", Float),
    Column("samples", Integer, nullable=False),
    Column("valid", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("config_hash", String(64), nullable=False),
    Column(
        "software", Text, nullable=False
    ),  # JSON, with os and memory; not in the series' key, else an upgrade would begin a new series
    Column("crc32", String(8)),  # of the other columns; a series' key is one itself
    Index("points_of_series", "series_key", "at"),
)

judgements = Table(
    "judgements",
    metadata,
    Column("run_id", String(200), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("series_key", String(16), primary_key=True),
    Column("changed_at", String(40), primary_key=True),
    Column("outcome", String(20), nullable=False),
    Column("magnitude", Float, nullable=False),
    Column("evidence", Text, nullable=False),  # JSON
    Column("crc32", String(8)),
    Index("judgements_of_series", "series_key", "changed_at"),
)
