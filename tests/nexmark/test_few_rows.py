"""A query on a handful of rows: answers are told whole, by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.bench.answers.nexmark_suite import chosen
from streamgauge.bench.engines.spark import queries
from streamgauge.bench.oracle.duck import ask
from streamgauge.bench.workloads.nexmark.standard import standard


def bid(seq: int, second: float, auction: int, price: int) -> dict[str, Any]:
    ts = datetime.fromtimestamp(second, UTC)
    walls = {"event_wall": seq, "offered_wall": 10 - seq}
    return {"kind": "bid", "seq": seq, "event_ts": ts, "auction": auction, "bidder": 7, "price": price, **walls}


@pytest.mark.spark
def test_ties_are_kept_and_a_window_ends_before_its_end(spark: Any) -> None:
    """Bids at 0, 9.999999 and 10 s: the third is of the next window. Walls are the largest of the window's."""
    given = [bid(0, 0, 1, 70), bid(1, 5, 2, 70), bid(2, 9.999999, 3, 50), bid(3, 10, 4, 90)]
    frame = spark.createDataFrame(pa.Table.from_pylist(given))
    (q7, q5) = chosen("q7,q5")
    best = queries.run([frame], standard(q7, 0)).collect()
    assert sorted((r.window_start.second, r.auction, r.price, r.event_wall, r.offered_wall) for r in best) == [
        (0, 1, 70, 2, 10), (0, 2, 70, 2, 10), (10, 4, 90, 3, 7),
    ]  # fmt: skip
    hot = queries.run([frame], standard(q5, 0)).collect()
    assert sorted(((r.window_start.minute, r.window_start.second), r.auction, r.bids) for r in hot) == [
        ((0, 0), 1, 1), ((0, 0), 2, 1), ((0, 0), 3, 1), ((0, 5), 2, 1), ((0, 5), 3, 1), ((0, 5), 4, 1),
        ((0, 10), 4, 1), ((59, 55), 1, 1),
    ]  # fmt: skip


@pytest.mark.spark
def test_who_joins_twice_in_a_window_is_one_row(spark: Any) -> None:
    """Holds where a stream has duplicates, or is looped within a window."""
    of_all: dict[str, Any] = {"id": 1, "name": "ann", "seller": None, "event_wall": 1, "offered_wall": 1}
    kinds = [("person", of_all)] * 2 + [("auction", {**of_all, "id": 7, "seller": 1})] * 3
    rows = [
        {**of, "kind": kind, "seq": n, "event_ts": datetime.fromtimestamp(n, UTC)} for n, (kind, of) in enumerate(kinds)
    ]
    table = pa.Table.from_pylist(rows)
    [q8] = chosen("q8")
    right = ask(standard(q8, 0), (table, table)).select(["id", "name", "auctions"]).to_pylist()
    assert right == [{"id": 1, "name": "ann", "auctions": 3}]
    frame = spark.createDataFrame(table)
    answered = queries.run([frame, frame], standard(q8, 0)).select("id", "name", "auctions").collect()
    assert [row.asDict() for row in answered] == right
