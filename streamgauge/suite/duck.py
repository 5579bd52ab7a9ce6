"""Nexmark's questions asked of DuckDB: one file of SQL per query beside the query itself."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from streamgauge import workloads
from streamgauge.link.checksum import checksum, result_columns
from streamgauge.link.oracle import Expectation
from streamgauge.workloads import Rule, Spec

_QUERIES = Path(workloads.__file__).parent / "nexmark"
_WINDOWS = """
create view windows as
select *, at_us - (at_us - {offset_us}) % {slide_us} - part * {slide_us} as window_start
from bid, unnest(range({window_us} // {slide_us})) as parts(part)
"""
#: the highest bid of each auction up to its expiry, of equal ones the earliest
_WINNER = """
create view winner as
select a.id as auction, a.seller, a.category, a.expires, b.bidder, b.price, b.at_us
from auction a join bid b on b.auction = a.id and b.at_us between a.at_us and a.expires
qualify row_number() over (partition by a.id order by b.price desc, b.at_us, b.seq) = 1
"""


def answer(wanted: Expectation) -> pa.Table:
    """Of a Nexmark query over the frames of each part; the union of the parts' answers."""
    return pa.concat_tables([ask(part.spec, part.frames) for part in wanted.parts])


def ask(spec: Spec, frames: tuple[pa.Table, ...]) -> pa.Table:
    """The answer over these rows (the wire's columns), as a table with the columns of the Spark query's result."""
    query = workloads.find(spec.query)
    given = {"offset_us": spec.offset_us, "slide_us": spec.step_us, "window_us": spec.window_us, "top": spec.top}
    sql = (_QUERIES / f"{query.name.rpartition('.')[2]}.sql").read_text()
    with duckdb.connect() as base:
        base.execute("set timezone = 'UTC'")
        base.execute("set threads = 1")
        for number, (reads, rows) in enumerate(zip(query.reads, frames, strict=True)):
            base.register(f"frame{number}", rows)
            for kind in reads["kind"]:
                base.execute(
                    f"create view {kind} as select *, epoch_us(event_ts) as at_us from frame{number} where kind = '{kind}'"
                )
        if any("bid" in reads["kind"] for reads in query.reads):
            base.execute(_WINDOWS.format(**given))
        if "winner" in sql:
            base.execute(_WINNER)
        return base.sql(sql.format(**given)).to_arrow_table()


def reduced(answer: pa.Table, rule: Rule) -> pa.Table:
    """What of an answer its rule compares."""
    answer = answer.select(result_columns(answer.column_names))
    if rule.kind in ("exact", "bounded") or not set(rule.by) <= set(answer.column_names):
        return answer  # DuckDB's has one row per key, and no revision
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
        found: pa.Table = base.sql(sql).to_arrow_table()
    return found.select([name for name in found.column_names if name != "revision"])


def size_and_hash(answer: pa.Table, rule: Rule) -> tuple[int, str]:
    """Of what is compared."""
    found = reduced(answer, rule)
    return found.num_rows, f"{checksum(found):016x}"
