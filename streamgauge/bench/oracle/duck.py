"""Answers every query with DuckDB, without Spark; the SQL is in the file of the query's question (workloads/).

This module makes the tables that the SQL reads. Nexmark queries have person, auction and bid. Others have `events`
with seq, at_us and, where the workload names them, key, value, number (the value as it is summed) and marked; a query
of two frames has left_events and right_events. `windows` has each event once for every window that holds it. frame0,
frame1 … are the rows as they came.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from streamgauge.base.errors import UserError
from streamgauge.bench import workloads
from streamgauge.bench.oracle.checksum import checksum, result_columns
from streamgauge.bench.oracle.late_rows import Expectation
from streamgauge.bench.oracle.locked import literal, quoted
from streamgauge.bench.workloads import Query, Rule, Spec

BATCH_ROWS = 100_000
_BEGIN = "create macro begin_of(us, step, shift) as us - ((us - shift) % step + step) % step"
_WINDOWS = """
create view {side}windows as
select *, begin_of(at_us, {slide_us}, {offset_us}) - part * {slide_us} as window_start
from {events}, unnest(range({length_us} // {slide_us})) as parts(part)
"""
#: a float in millionths, as the query sums it: rounded half away from zero, null if it fits no bigint.
#: 2^63 is cut to the largest bigint instead, because the engine checks the range on the float
_MILLIONTHS = """case when round({value} * 1e6) = 9223372036854775808::double then 9223372036854775807
    else try_cast(round({value} * 1e6) as bigint) end"""
#: the highest bid of each auction up to its expiry; of equal bids the earliest
_WINNER = """
create view winner as
select a.id as auction, a.seller, a.category, a.expires, b.bidder, b.price, b.at_us
from auction a join bid b on b.auction = a.id and b.at_us between a.at_us and a.expires
qualify row_number() over (partition by a.id order by b.price desc, b.at_us, b.seq) = 1
"""


def answer(wanted: Expectation) -> pa.Table:
    """Union of the answers to all parts of an expectation."""
    return pa.concat_tables([ask(part.spec, part.frames) for part in wanted.parts])


def size_and_checksum(wanted: Expectation) -> tuple[int, int]:
    """Row count and checksum of that union, which need not fit into memory."""
    rows, total = 0, 0
    for part in wanted.parts:
        with asked(part.spec, part.frames) as relation:
            for batch in relation.to_arrow_reader(BATCH_ROWS):
                rows, total = rows + batch.num_rows, (total + checksum(batch)) % 2**64
    return rows, total


def ask(spec: Spec, frames: tuple[pa.Table, ...]) -> pa.Table:
    """Returns the answer over these rows (the wire's columns), with the columns of the query's result.

    Raises ValueError for numbers that the answer cannot hold.
    """
    with asked(spec, frames) as relation:
        return relation.to_arrow_table()


@contextmanager
def asked(spec: Spec, frames: tuple[pa.Table, ...], sql: str = "") -> Iterator[duckdb.DuckDBPyRelation]:
    """Makes the tables and yields the query's relation. Raises ValueError for numbers that the answer cannot hold.

    sql: what to ask of the tables instead of the query's own question. Raises UserError for a faulty question of a
    package.
    """
    query = workloads.find(spec.query)
    values = {
        "offset_us": spec.offset_us, "slide_us": spec.step_us, "window_us": spec.window_us,
        "length_us": spec.length_us, "top": spec.top,
        "columns": ", ".join(map(quoted, dict.fromkeys(name for name in (spec.key, spec.value) if name is not None))),
    }  # fmt: skip
    sql = sql or query.asked()
    with tempfile.TemporaryDirectory(prefix="streamgauge-duck-") as scratch, duckdb.connect() as base:
        base.execute(f"set timezone = 'UTC'; set threads = 1; set temp_directory = {literal(scratch)}")
        base.execute(_BEGIN)
        for number, rows in enumerate(frames):
            base.register(f"frame{number}", rows)
        if query.reads:
            _nexmark(base, query, values)
        else:
            for number, side in enumerate(("",) if len(frames) == 1 else ("left_", "right_")):
                base.execute(
                    f"create view {side}events as select {_columns(spec, frames[number])} from frame{number} r"
                )
                base.execute(_WINDOWS.format(side=side, events=f"{side}events", **values))
        try:
            yield _narrow(base.sql(sql.format(**values)))
        except (duckdb.OutOfRangeException, duckdb.ConversionException) as problem:
            raise ValueError(f"{spec.query}: {str(problem).splitlines()[0]}") from None
        except (duckdb.ProgrammingError, LookupError) as problem:
            if not query.question:
                raise
            raise UserError(f"query {spec.query}: {query.question}: {str(problem).splitlines()[0]}") from None


def _narrow(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The relation with sums of whole numbers, which have 128 bits in DuckDB, in the 64 bits of engines."""
    if "HUGEINT" not in relation.types:
        return relation
    names = zip(map(quoted, relation.columns), relation.types, strict=True)
    return relation.project(
        ", ".join(f"{name}::bigint as {name}" if kind == "HUGEINT" else name for name, kind in names)
    )


def _nexmark(base: duckdb.DuckDBPyConnection, query: Query, values: dict[str, object]) -> None:
    for number, reads in enumerate(query.reads):
        for kind in reads["kind"]:
            base.execute(
                f"create view {kind} as select *, epoch_us(event_ts) as at_us from frame{number} where kind = '{kind}'"
            )
    if any("bid" in reads["kind"] for reads in query.reads):
        base.execute(_WINDOWS.format(side="", events="bid", **values))
    if query.of_winners:
        base.execute(_WINNER)


def _columns(spec: Spec, rows: pa.Table) -> str:
    """The select list of `events`."""
    columns = ["seq", "epoch_us(event_ts) as at_us"]
    if spec.key is not None:
        columns.append(f"r.{quoted(spec.key)} as key")
    if spec.value is not None:
        value, kind = f"r.{quoted(spec.value)}", rows.schema.field(spec.value).type
        columns.append(f"{value} as value")
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            columns.append(f"{number_of(spec, rows)} as number")
        if spec.mark is not None:
            columns.append(f"coalesce({value}::varchar = {literal(spec.mark)}, false) as marked")
    columns += [f"r.{quoted(column)}" for column in workloads.find(spec.query).columns]
    return ", ".join(columns)


def number_of(spec: Spec, rows: pa.Table) -> str:
    """The value of the rows r as it is summed, in SQL."""
    value = f"r.{quoted(str(spec.value))}"
    is_float = pa.types.is_floating(rows.schema.field(str(spec.value)).type)
    return _MILLIONTHS.format(value=value) if is_float else value


def reduced(answer: pa.Table, rule: Rule) -> pa.Table:
    """Returns the part of an answer that its rule compares."""
    answer = answer.select(result_columns(answer.column_names))
    if rule.kind in ("exact", "bounded") or not set(rule.by) <= set(answer.column_names):
        return answer  # DuckDB's own answer has one row per key, and no revision
    keys = ", ".join(rule.key)
    if rule.kind == "invariant":
        sums = ", ".join(f"sum({name})::bigint as {name}" for name in rule.by)
        sql = f"select {keys}, {sums} from answer group by all"
    else:
        latest = ", ".join(f"{name} desc" for name in rule.by)
        sql = f"from answer qualify row_number() over (partition by {keys} order by {latest}) = 1"
    with duckdb.connect() as base:
        base.execute("set threads = 1")
        base.register("answer", answer)
        rows: pa.Table = base.sql(sql).to_arrow_table()
    return rows.select([name for name in rows.column_names if name != "revision"])


def size_and_hash(answer: pa.Table, rule: Rule) -> tuple[int, str]:
    """Row count and checksum (16 hexadecimal digits) of what the rule compares."""
    rows = reduced(answer, rule)
    return rows.num_rows, f"{checksum(rows):016x}"
