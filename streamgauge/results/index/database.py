"""The tables of the index, and the database (SQLite or PostgreSQL) that holds them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, NoSuchModuleError

from streamgauge.base.errors import Damaged, UserError
from streamgauge.base.places import as_user_error
from streamgauge.base.shipped import INSTALL
from streamgauge.catalog.results import NAME_CHARACTERS

#: raise it when a table changes: tables with another number are refused, and made again from the records
SCHEMA = "0006"
metadata = sa.MetaData()

schema = sa.Table("schema_number", metadata, sa.Column("number", sa.String(8), primary_key=True))

series = sa.Table(
    "series",
    metadata,
    sa.Column("key", sa.String(16), primary_key=True),  # hash of what is measured and the machine
    *(
        sa.Column(name, sa.String(NAME_CHARACTERS), nullable=False)
        for name in ("benchmark", "experiment", "workload", "system", "mode", "metric", "unit")
    ),
    sa.Column("machine", sa.Text, nullable=False),  # JSON: host (if it has a label), cpu, cores
)

points = sa.Table(
    "points",
    metadata,
    sa.Column("run_id", sa.String(200), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),  # of the record in the run's results
    # the key's last two columns separate runs of one id, made by hosts that share the database
    sa.Column("series_key", sa.String(16), sa.ForeignKey("series.key"), primary_key=True),
    sa.Column("at", sa.String(40), primary_key=True),  # ISO-8601, UTC
    sa.Column("value", sa.Float),
    sa.Column("low", sa.Float),
    sa.Column("high", sa.Float),
    sa.Column("samples", sa.Integer, nullable=False),
    sa.Column("valid", sa.Boolean, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("config_hash", sa.String(64), nullable=False),
    # JSON, with os and memory; not in the series' key, else an upgrade would begin a new series
    sa.Column("software", sa.Text, nullable=False),
    sa.Column("crc32", sa.String(8)),  # of the other columns; a series' key is one itself
    sa.Index("points_of_series", "series_key", "at"),
)

judgements = sa.Table(
    "judgements",
    metadata,
    sa.Column("run_id", sa.String(200), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("series_key", sa.String(16), primary_key=True),
    sa.Column("changed_at", sa.String(40), primary_key=True),
    sa.Column("outcome", sa.String(20), nullable=False),
    sa.Column("magnitude", sa.Float, nullable=False),
    sa.Column("evidence", sa.Text, nullable=False),  # JSON
    sa.Column("crc32", sa.String(8)),
    sa.Index("judgements_of_series", "series_key", "changed_at"),
)


_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
#: seconds that a second writer waits for the first
_WAIT_S = 60
#: errors of SQLite that are not the file's: it is in use, or its disk is at fault
_MAY_PASS = re.compile("locked|unable to open|full|disk I/O|readonly directory")


def connect(url: str, *, make: bool = True) -> sa.Engine:
    """An engine for sqlite:///FILE or postgresql://… Raises UserError in one line, without the password.

    make: False refuses an SQLite file that does not exist, so that nothing is created.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # ValueError: the port is not a number
        raise UserError("--database: not a URL, allowed: sqlite:///FILE or postgresql://host/name") from None
    kind = parsed.drivername.split("+")[0]
    if kind not in _DRIVERS:
        raise UserError(f"--database: found {kind!r}, allowed: sqlite or postgresql")
    try:
        if kind == "sqlite":
            if not make and parsed.database and not Path(parsed.database).is_file():
                raise UserError(f"{name(parsed)}: no such database; `streamgauge results add` makes it")
            return _sqlite(parsed)
        options = {"connect_timeout": 10}
        return sa.create_engine(parsed.set(drivername=_DRIVERS[kind]), connect_args=options, pool_pre_ping=True)
    except (NoSuchModuleError, ImportError) as problem:
        raise UserError(f"{name(parsed)}: its driver is not installed ({problem}); {INSTALL}") from None


def _sqlite(url: URL) -> sa.Engine:
    if url.database and url.database != ":memory:":
        try:
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise as_user_error(problem, Path(url.database)) from None
    engine = sa.create_engine(url, connect_args={"timeout": _WAIT_S})

    @sa.event.listens_for(engine, "connect")
    def _own_transactions(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # else sqlite3 begins transactions on its own, too late
        connection.execute("PRAGMA foreign_keys = ON")

    @sa.event.listens_for(engine, "begin")
    def _write_at_once(connection: sa.Connection) -> None:
        # a reader that turns writer in mid-transaction is refused, whatever the time-out
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def name(url: URL) -> str:
    return url.render_as_string(hide_password=True)


@contextmanager
def transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yields a connection in a transaction, all or nothing. Raises UserError, in one line, for a database's error."""
    try:
        with engine.begin() as connection:
            yield connection
    except (DBAPIError, OSError, UnicodeDecodeError) as problem:  # the last: of names in a damaged file
        cause = (problem.orig if isinstance(problem, DBAPIError) else None) or problem
        said = str(cause).strip().splitlines() or ["no reason given"]
        if (file := file_of(engine)) and not _MAY_PASS.search(said[0]) and os.access(file, os.W_OK):
            raise damaged(file, said[0]) from None
        if isinstance(problem, DataError):
            raise UserError(f"{name(engine.url)}: the database refuses a value: {said[0]}") from None
        raise UserError(
            f"{name(engine.url)}: the database does not answer: {said[0]}; start it, or choose another --database"
        ) from None


def file_of(engine: sa.Engine) -> Path | None:
    """Returns the file of an SQLite database; None for another one, and for one in memory."""
    kept = engine.dialect.name == "sqlite" and engine.url.database not in (None, "", ":memory:")
    return Path(str(engine.url.database)) if kept else None


def damaged(file: object, what: str) -> Damaged:
    return Damaged(file, f"damaged, {what}", "`streamgauge results rebuild` makes it again from the records")


def require_intact(engine: sa.Engine) -> None:
    """Raises Damaged if SQLite finds its file's structure broken: a row that an index misses, a series that is gone."""
    if file := file_of(engine):
        with transaction(engine) as connection:
            (problem, *_) = connection.execute(sa.text("PRAGMA integrity_check(1)")).scalars()
            gone = connection.execute(sa.text("PRAGMA foreign_key_check")).first()
        if problem != "ok" or gone:
            raise damaged(file, " ".join(str(problem).split()) if problem != "ok" else "a series is gone")


def schema_of(connection: sa.Connection) -> str | None:
    """Number of the tables' schema; None for an empty database. Raises UserError if the tables are not ours.

    An SQLite file belongs to one program. In PostgreSQL, tables of others may lie beside ours.
    """
    tables = set(sa.inspect(connection).get_table_names())
    missing = metadata.tables.keys() - tables
    if not missing:
        return connection.execute(sa.select(schema.c.number)).scalar()
    if len(metadata.tables) - len(missing) > 1 and (file := file_of(connection.engine)):
        raise damaged(file, f"the table {min(missing)} is gone")
    if metadata.tables.keys() & tables or (tables and connection.dialect.name == "sqlite"):
        raise UserError(f"{name(connection.engine.url)}: its tables are not Streamgauge's; choose another --database")
    return None


def prepare(engine: sa.Engine) -> None:
    """Makes the tables in an empty database. Raises UserError for the schema of another version."""
    with transaction(engine) as connection:
        if engine.dialect.name == "postgresql":  # two processes may start at once
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(7305719)"))
        number = schema_of(connection)
        if number is None:
            metadata.create_all(connection)
            connection.execute(sa.insert(schema).values(number=SCHEMA))
        elif number != SCHEMA:
            raise UserError(
                f"{name(engine.url)}: found schema {number}, allowed: {SCHEMA}; another version made it: name "
                "another --database or move this one away, then run `streamgauge results rebuild`"
            )
    require_intact(engine)
