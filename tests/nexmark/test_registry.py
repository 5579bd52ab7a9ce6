"""The registry of queries: its rows, names, rules and page, without an engine."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.plugins import loaded
from streamgauge.base.schemas import NEXMARK
from streamgauge.bench import workloads
from streamgauge.bench.answers import systems
from streamgauge.bench.answers.nexmark_suite import chosen
from streamgauge.bench.answers.record import short
from streamgauge.bench.engines.spark import queries
from streamgauge.bench.oracle.duck import reduced
from streamgauge.bench.workloads import Rule, Spec
from streamgauge.bench.workloads.nexmark.queries import QUERIES
from streamgauge.bench.workloads.nexmark.standard import standard
from streamgauge.config import Workload


def test_rules_compare_what_they_say() -> None:
    table = pa.table({"k": [1, 1, 2], "n": [1, 3, 2], "v": [5, 6, 7], "revision": [1, 2, 1], "event_wall": [0, 0, 0]})
    assert reduced(table, Rule()).num_rows == 3
    last = reduced(table, Rule("last per key", ("k",), ("n",))).sort_by("k")
    assert last.to_pylist() == [{"k": 1, "n": 3, "v": 6}, {"k": 2, "n": 2, "v": 7}]
    tied = pa.table({"k": [1, 1], "n": [3, 3], "seq": [8, 9]})
    assert reduced(tied, Rule("last per key", ("k",), ("n", "seq"))).to_pylist() == [{"k": 1, "n": 3, "seq": 9}]
    sums = reduced(table, Rule("invariant", ("k",), ("v",))).sort_by("k")
    assert sums.to_pylist() == [{"k": 1, "v": 11}, {"k": 2, "v": 7}]


def test_rows_of_the_registry_are_whole() -> None:
    place = Path(workloads.__file__).parent / "nexmark"
    assert [query.name for query in QUERIES] == [f"nexmark.q{number}" for number in range(24)]
    for query in QUERIES:
        assert len(query.reads) == query.streams
        assert set(query.columns) <= set(NEXMARK)
        assert all((query.features, query.title, query.asks, query.contributors))
        assert (place / f"{short(query)}.sql").exists()
        assert callable(loaded(queries.place(standard(query)), query.name))
        assert workloads.find(query.name) is query


def test_q0_q5_q7_and_q8_can_be_searched_and_what_is_compared_otherwise_cannot() -> None:
    columns = dict(NEXMARK)
    for name in ("q0", "q5", "q7", "q8"):
        assert Spec.of(Workload(name="w", query=f"nexmark.{name}"), columns).query == f"nexmark.{name}"
    with pytest.raises(UserError, match=r"workloads.w.query: nexmark.q18 is compared by last per key, which"):
        Spec.of(Workload(name="w", query="nexmark.q18"), columns)
    with pytest.raises(UserError, match=r"nexmark.q5 reads kind; declare it in source.columns"):
        Spec.of(Workload(name="w", query="nexmark.q5"), {"auction": "int64"})


def test_unknown_names_are_told_in_one_line() -> None:
    with pytest.raises(UserError, match="--queries: found 'q24', allowed: all, or some of q0,q1,"):
        chosen("q5,q24")
    with pytest.raises(UserError, match="--system: found 'flunk', allowed: spark, "):
        systems.named("flunk")
    assert chosen("q7,q5,q7") == (QUERIES[7], QUERIES[5])


def test_the_page_lists_the_registry() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "nexmark.md").read_text()
    told = page.split("<!-- queries -->\n")[1].split("<!-- /queries -->")[0]
    assert told == "".join(
        f"| {short(q)} | {q.asks} | {q.rule.kind} | {', '.join(q.features)} | {q.differs} |\n" for q in QUERIES
    )
