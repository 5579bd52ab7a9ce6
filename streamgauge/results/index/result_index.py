"""Writes results into the database and queries them."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, Select, Table, and_, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from streamgauge.base.canonical import canonical
from streamgauge.base.errors import Damaged, UserError
from streamgauge.bench.answers import functional
from streamgauge.catalog import results
from streamgauge.catalog.results import MEASURED, REPLACED
from streamgauge.records.claim import with_mark
from streamgauge.records.judgement import LOOK, Judgement, Look, SelfTest
from streamgauge.records.result import Result
from streamgauge.records.series import Point, SeriesHead
from streamgauge.results.index import database
from streamgauge.results.index.database import judgements, points, series

Row = dict[str, Any]
log = logging.getLogger("streamgauge")
_POINT = ("run_id", "at", "value", "low", "high", "samples", "valid", "reason", "config_hash")


def series_key(result: Result) -> str:
    """Hash (16 hex digits) of what is measured and the machine: machines of two kinds never share a baseline."""
    return str(_series(result)["key"])


def _series(result: Result) -> Row:
    row = {**results.measured(result), "machine": canonical(results.identity(result.machine))}
    return {"key": _hash_of(row), **row}


def _hash_of(row: Row) -> str:
    text = canonical([*(row[name] for name in MEASURED), json.loads(row["machine"])])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Index:
    """The database behind a URL. Writers may be killed at any moment, and there may be several."""

    def __init__(self, url: str, *, make: bool = True) -> None:
        """make: False refuses an SQLite file that does not exist. Raises UserError."""
        self.problems: list[str] = []  # lines of the records that are no figures and no judgements
        self.engine = database.connect(url, make=make)
        database.prepare(self.engine)

    def add_run(self, run: Path) -> int:
        """Adds the run's records that the index lacks, in one transaction; returns the number of new points."""
        with database.transaction(self.engine) as connection:
            return self._add(connection, run)

    def rebuild(self, runs: Iterable[Path], *, others: bool = False) -> int:
        """Empties the index and fills it from the runs' records, all or nothing; returns the number of points.

        Raises UserError if that loses points or judgements which these records do not hold; others=True accepts that.
        """
        with database.transaction(self.engine) as connection, _reading(connection):
            if connection.dialect.name == "postgresql":  # other writers wait
                connection.exec_driver_sql("LOCK TABLE series, judgements, points IN EXCLUSIVE MODE")
            before = _keys(connection)
            for table in (points, judgements, series):
                connection.execute(delete(table))
            added = sum(self._add(connection, run) for run in sorted(runs))
            if not others and (lost := before - _keys(connection)):
                raise UserError(_foreign(lost))
            return added

    def _add(self, connection: Connection, run: Path) -> int:
        figures, problems = results.numbered(run)
        judged, more = results.numbered_judgements(run)
        for problem in (*problems, *more):
            line = f"{problem.file}: {problem.what}"
            if line not in self.problems:
                self.problems.append(line)
                log.warning("%s; it was left out", line)
        heads = [_series(result) for _, result in figures]
        by_key = {head["key"]: head for head in heads}
        _insert(connection, series, [by_key[key] for key in sorted(by_key)])
        rows = [_point(head["key"], number, one) for head, (number, one) in zip(heads, figures, strict=True)]
        _insert(connection, judgements, [_judgement(number, one) for number, one in judged])
        added = _insert(connection, points, rows)
        for row in rows:
            if row["reason"] == REPLACED:  # it may have been added while it still stood
                known = and_(*(points.c[column.name] == row[column.name] for column in points.primary_key))
                values = {"valid": False, "reason": REPLACED, "crc32": row["crc32"]}
                connection.execute(update(points).where(known).values(values))
        return added

    # -- queries

    def results(self, *, limit: int | None = None, since: str | None = None, **wanted: str | None) -> list[Row]:
        """Points with what they measure, oldest first; of many, the newest `limit`.

        since: ISO-8601. wanted: a value for any of MEASURED, key or run_id. Raises UserError for another name.
        """
        query = _wanted(select(series, points).join_from(points, series), wanted)
        if since:
            query = query.where(points.c.at >= since)
        query = query.order_by(points.c.at.desc(), points.c.run_id.desc(), points.c.number.desc()).limit(limit)
        return self._all(query)[::-1]

    def series(self, *, run_id: str | None = None, **wanted: str | None) -> list[SeriesHead]:
        """Series; run_id: only those with a point of that run. wanted: a value for any of MEASURED, or key."""
        query = _wanted(select(series), wanted)
        if run_id is not None:
            query = query.where(series.c.key.in_(select(points.c.series_key).where(points.c.run_id == run_id)))
        query = query.order_by(*(series.c[name] for name in MEASURED), series.c.key)
        return [SeriesHead(**row) for row in self._all(query)]

    def history(self, key: str) -> list[Point]:
        """Points of a series, oldest first, including void ones."""
        query = select(points).where(points.c.series_key == key)
        return [Point(**row) for row in self._all(query.order_by(points.c.at, points.c.run_id, points.c.number))]

    def judged(self, key: str | None = None) -> list[Judgement]:
        """Judgements, oldest first, without the looks of nights. Raises Damaged."""
        with database.transaction(self.engine) as connection, _reading(connection):
            query = _judgements(key).where(judgements.c.outcome != LOOK)
            return [results.judgement_of(row) for row in _rows(connection, query)]

    def looks(self) -> dict[str, tuple[str, Look]]:
        """The newest look of a night at each series, by its key, and its time. Raises Damaged."""
        with database.transaction(self.engine) as connection, _reading(connection):
            rows = _rows(connection, _judgements().where(judgements.c.outcome == LOOK))
            newest = [results.judgement_of(row) for row in {row["series_key"]: row for row in rows}.values()]
        return {one.series_key: (one.changed_at, one.evidence) for one in newest if isinstance(one.evidence, Look)}

    def _all(self, query: Select[Any]) -> list[Row]:
        with database.transaction(self.engine) as connection:
            return _rows(connection, query)


@dataclass(frozen=True)
class History:
    """A series: its head, its points oldest first, the judgements on it."""

    head: SeriesHead
    points: list[Point]
    judged: list[Judgement]

    @classmethod
    def of(cls, index: Index, head: SeriesHead) -> Self:
        return cls(head, index.history(head.key), index.judged(head.key))

    @property
    def name(self) -> str:
        """Names of what it measures, with a mark if its latest figure is in doubt."""
        return with_mark(self.head.text, self.sound[-1].claim if self.sound else "")

    @property
    def is_output(self) -> bool:
        """True if the series describes a query's answer, where any difference is an error at once."""
        return functional.is_output(self.head.metric)

    @property
    def sound(self) -> list[Point]:
        return [point for point in self.points if point.is_sound]

    @property
    def places(self) -> dict[str, int]:
        """Index of each sound point by its time."""
        return {point.at: place for place, point in enumerate(self.sound)}

    @property
    def self_test(self) -> SelfTest | None:
        """The latest A/A comparison; None if there was none."""
        tests = [(one.changed_at, one.evidence) for one in self.judged if isinstance(one.evidence, SelfTest)]
        return max(tests, key=lambda test: test[0])[1] if tests else None


def rebuilt(url: str, runs: Iterable[Path], *, others: bool = False) -> tuple[Index, int]:
    """Rebuilds the index behind a URL; returns it and the number of its points. Raises UserError.

    A damaged SQLite file is kept beside the new one, as it may hold results of other hosts.
    """
    try:
        index = Index(url)
        return index, index.rebuild(runs, others=others)
    except Damaged as problem:
        file = database.file_of(database.connect(url))
        if file is None:
            raise
        names = (file.with_name(f"{file.name}.damaged{number}") for number in ("", *range(2, 1000)))
        kept = next(name for name in names if not name.exists())
        os.replace(file, kept)
        for ending in ("-journal", "-wal", "-shm"):  # they would be taken for the new file's
            Path(f"{file}{ending}").unlink(missing_ok=True)
        log.warning("%s: %s; it was kept as %s", file, problem.what, kept.name)
        index = Index(url)
        return index, index.rebuild(runs, others=others)


def _rows(connection: Connection, query: Select[Any]) -> list[Row]:
    """Rows that a query finds. Raises Damaged if one of them is not what was written."""
    with _reading(connection):
        return [_row(row) for row in connection.execute(query).all()]


@contextmanager
def _reading(connection: Connection) -> Iterator[None]:
    """Turns the error of a value that its column cannot have into Damaged."""
    try:
        yield
    except (ValueError, TypeError, LookupError) as problem:
        where = database.file_of(connection.engine) or database.name(connection.engine.url)
        raise database.damaged(where, " ".join(str(problem).split())) from None


def _keys(connection: Connection) -> set[tuple[Any, ...]]:
    """Identities of all points and judgements that are what was written."""
    keys = set()
    for table in (points, judgements):
        for row in (dict(one._mapping) for one in connection.execute(select(table)).all()):
            if row["crc32"] == _checksum(row):
                keys.add((table.name, *(row[column.name] for column in table.primary_key)))
    return keys


def _foreign(lost: set[tuple[Any, ...]]) -> str:
    runs = sorted({str(run) for _, run, *_ in lost})
    what = " and ".join(sorted({str(key[0]) for key in lost}, reverse=True))
    named = ", ".join(runs[:3]) + (f" and {len(runs) - 3} more" if len(runs) > 3 else "")
    return (
        f"found {len(lost)} {what} (runs {named}) that are in no record here: they come from another host, or their "
        "records were deleted; `results add` only adds, `results rebuild --others` drops them"
    )


def _judgements(key: str | None = None) -> Select[Any]:
    query = select(judgements).order_by(judgements.c.changed_at, judgements.c.run_id, judgements.c.number)
    return query if key is None else query.where(judgements.c.series_key == key)


def _wanted(query: Select[Any], wanted: dict[str, str | None]) -> Select[Any]:
    for name, value in wanted.items():
        if name not in (*MEASURED, "key", "run_id"):
            raise UserError(f"filter: found {name!r}, allowed: {', '.join((*MEASURED, 'key', 'run_id'))}")
        if value is not None:
            query = query.where(and_(series.c[name] == value if name in series.c else points.c[name] == value))
    return query


def _row(row: Any) -> Row:
    """Row as a plain dict; JSON columns are parsed, the series' key is there once, and the claim has its own key.

    Raises ValueError.
    """
    values = dict(row._mapping)
    if "crc32" in values and values.pop("crc32") != _checksum(values):
        raise ValueError(f"the checksum of a row of run {values['run_id']!r} does not match")
    if "machine" in values and "key" in values and values["key"] != _hash_of(values):
        raise ValueError(f"the key of series {values['key']!r} does not match")
    values.pop("key", None) if "series_key" in values else None
    parsed: Row = {k: json.loads(v) if k in ("machine", "software", "evidence") else v for k, v in values.items()}
    if "software" in parsed:
        parsed["claim"] = parsed["software"].pop("claim", "")
    return parsed


def _with_crc32(row: Row) -> Row:
    return {**row, "crc32": _checksum(row)}


def _checksum(row: Row) -> str:
    """Checksum of a row's own columns, without those of a series that was joined; 1 and 1.0 are one value."""
    own = points.c if "value" in row else judgements.c
    values = [row[column.name] for column in own if column.name != "crc32" and column.name in row]
    same = [float(value) if isinstance(value, int) else value for value in values]
    return f"{zlib.crc32(canonical(same).encode()):08x}"


def _point(key: str, number: int, result: Result) -> Row:
    """A figure's row, with None for NaN and infinity, which databases treat differently; without a value it is void."""
    point: Row = {"number": number, "series_key": key, "software": canonical(results.attributes(result))}
    point |= {name: getattr(result, name) for name in _POINT}
    lost = [name for name in ("value", "low", "high") if point[name] is not None and not math.isfinite(point[name])]
    if "value" in lost:
        point |= {"valid": False, "reason": point["reason"] or f"{point['value']} is not a finite number"}
    return _with_crc32({**point, **dict.fromkeys(lost)})


def _judgement(number: int, one: Judgement) -> Row:
    fields = {name: value for name, value in vars(one).items() if name != "version"}
    return _with_crc32({**fields, "number": number, "evidence": canonical(one.evidence)})


def _insert(connection: Connection, table: Table, rows: Sequence[Row]) -> int:
    """Inserts the rows that are not there yet; returns their number."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    adding = insert(table).on_conflict_do_nothing().returning(*table.primary_key)
    return len(connection.execute(adding, rows).all()) if rows else 0
