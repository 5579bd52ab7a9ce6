"""A database for SQL that somebody else has written: no file, no network, no setting; bounded memory and time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import psutil

from streamgauge.base.errors import UserError

MEMORY_BYTES, _SPILLED = 4 << 30, "64GB"
#: a comparison of a trial's answers takes seconds
LONGEST_S = 600.0
_LOOK_S = 0.05


def locked(scratch: str | None = None) -> duckdb.DuckDBPyConnection:
    """A new database in memory; scratch: a folder for what does not fit, without which nothing leaves the memory."""
    base = duckdb.connect()
    base.execute(f"set timezone = 'UTC'; set threads = 1; set memory_limit = '{MEMORY_BYTES}B'")
    base.execute("set temp_directory = $1", [scratch or ""])
    if scratch is not None:
        base.execute(f"set max_temp_directory_size = '{_SPILLED}'")
    # SQL would see this program's variables, too
    base.execute("set python_enable_replacements = false; set enable_external_access = false")
    base.execute("set lock_configuration = true")
    return base


@contextmanager
def limited(base: duckdb.DuckDBPyConnection, sql: str, seconds: float | None = None) -> Iterator[None]:
    """Refuses SQL that is not one query, and ends what the block asks when it takes too long or too much memory.

    Raises UserError with the first line of the database's message.
    """
    with _one_line():
        kinds = [statement.type for statement in base.extract_statements(sql)]
    if kinds != [duckdb.StatementType.SELECT]:
        given = ", ".join(kind.name for kind in kinds[:4]) or "nothing"
        raise UserError(f"answer.sql: found {given}, allowed: one SELECT over the table events")
    over, reasons = threading.Event(), list[str]()
    arguments = (base, LONGEST_S if seconds is None else seconds, over, reasons)
    watcher = threading.Thread(target=_watch, args=arguments, daemon=True)
    watcher.start()
    try:
        with _one_line():
            yield
    except duckdb.InterruptException:
        raise UserError(f"answer.sql: {reasons[0] if reasons else 'was interrupted'}") from None
    finally:
        over.set()
        watcher.join()


def _watch(base: duckdb.DuckDBPyConnection, seconds: float, over: threading.Event, reasons: list[str]) -> None:
    """Interrupts the query; DuckDB's own limit does not count the lists and texts that a function makes."""
    memory = psutil.Process().memory_info
    deadline, most_bytes = time.monotonic() + seconds, memory().rss + 2 * MEMORY_BYTES
    while not over.wait(_LOOK_S):
        if time.monotonic() > deadline:
            reasons.append(f"has not ended after {seconds:g} s")
        elif memory().rss > most_bytes:
            reasons.append(f"takes more than {2 * MEMORY_BYTES / 2**30:g} GiB of memory")
        if reasons:
            base.interrupt()


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except duckdb.InterruptException:
        raise
    except duckdb.Error as problem:
        raise UserError(f"answer.sql: {str(problem).splitlines()[0]}") from None


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
