"""Tells how far the sums of a query go, in whatever order they are formed: DuckDB counts in 128 bits."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb
import pyarrow as pa

from streamgauge.bench.oracle.duck import asked, number_of
from streamgauge.bench.workloads import Spec, find

LARGEST = 2**63 - 1
MILLIONTHS = 10**6
_SUM = "sum(number)::bigint"
#: the sums of the numbers above 0 and of those below: every sum on the way lies between them
_SIDES = ("sum(greatest(number, 0))", "sum(-least(number, 0)::hugeint)")


def sums(spec: Spec) -> bool:
    """True if the query adds up values of a column that the workload names."""
    query = find(spec.query)
    return query.counts(spec.value) and _SUM in query.asked()


def whole(pieces: Iterable[pa.Table], spec: Spec) -> int:
    """The sum of all magnitudes, which no sum of the query passes."""
    total = 0
    with duckdb.connect() as base:
        base.execute("set threads = 1")
        for rows in pieces:
            base.register("piece", rows)
            number = number_of(spec, rows)
            answer = base.execute(f"select coalesce(sum(abs({number}::hugeint)), 0)::varchar from piece r").fetchall()
            total += sum(int(text) for (text,) in answer)
    return total


def extremes(rows: pa.Table, spec: Spec) -> int:
    """The largest magnitude that a sum of the query may reach, over a window or session of one group."""
    most = 0
    for side in _SIDES:
        largest = f"select coalesce(max(total), 0)::varchar from ({find(spec.query).asked().replace(_SUM, side)})"
        with asked(spec, (rows,), largest) as answer:
            most = max(most, *(int(text) for (text,) in answer.fetchall()))
    return most
