"""The hard queries against DuckDB: in batch, in streaming without rightly dropped rows; mutants caught."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as unhurried
from hypothesis import strategies as st

from streamgauge.base.errors import UserError
from streamgauge.bench import workloads
from streamgauge.bench.answers.capabilities import HARD
from streamgauge.bench.answers.hard_queries import (
    SPECS,
    events,
    judge,
    offered,
    rows,
    slices,
    stream,
)
from streamgauge.bench.engines.spark import queries
from streamgauge.bench.engines.spark.engine import PROVIDER, ROCKSDB, settings
from streamgauge.bench.engines.spark.finite import FiniteRun, MicroBatch
from streamgauge.bench.oracle.duck import answer, ask, size_and_hash
from streamgauge.bench.oracle.late_rows import expectation, late_watermarks_us
from streamgauge.bench.oracle.session_deals import deals
from streamgauge.bench.workloads import Rule, Spec
from streamgauge.config import Workload
from streamgauge.records.answers import MODES

S = 1_000_000
COUNT, LONGEST_S = 120, 90
CUSTOM, CHAINED, SESSIONS, ONCE, OUTER, TOP, JOIN = SPECS


@pytest.mark.spark
@pytest.mark.parametrize(
    "disorder", [pytest.param(0, id="ordered", marks=pytest.mark.prove), pytest.param(0.2, id="disordered")]
)
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.query)
def test_batch_answers_as_duckdb_and_so_does_streaming_but_for_what_its_batches_say_was_late(
    spark: Any, tmp_path: Path, spec: Spec, disorder: float
) -> None:
    given = events(COUNT, disorder, LONGEST_S)
    batch_rows = COUNT // (3 if disorder else 2)  # an event is late by what came two micro-batches before
    records = [judge(spark, spec, mode, given, batch_rows, tmp_path / mode) for mode in MODES]
    (batch, _), (streaming, micro) = records
    assert (batch.status, streaming.status) == ("correct", "correct"), (batch.why, streaming.why)
    assert streaming.late_drops_expected == streaming.late_drops_reported
    assert bool(streaming.late_drops_reported) == (disorder > 0)
    assert (batch.rows or 0) > 5
    if not disorder:
        assert (batch.rows, batch.hash) == (streaming.rows, streaming.hash)
    # state grows, and the sentinel empties every operator's but for itself
    operators = [one.operators for one in micro]
    assert [len(operator) for operator in operators] == [2 if spec is CHAINED else 1] * len(operators)
    assert max(operator[0].rows for operator in operators) > 1
    for states in zip(*operators, strict=True):
        assert max(state.rows for state in states) > 0
        assert states[-1].rows <= 1
        assert all(state.bytes > 0 for state in states)


MUTANTS = {
    "a failure is in two more windows": (CUSTOM, "micros(spec.window_us)", "micros(2 * spec.window_us)"),
    "a window's begin belongs to the one before": (CUSTOM, 'F.col("event_ts") >= own', 'F.col("event_ts") > own'),
    "outer windows begin elsewhere": (CHAINED, "micros(spec.offset_us)", "micros(0)"),
    "ties go to the later event": (TOP, '-F.col("seq")', 'F.col("seq")'),
    "touching sessions are two": (SESSIONS, "micros(spec.window_us)", "micros(spec.window_us - 1)"),
    "once for ever": (ONCE, '["key", "window_start"]', '["key"]'),
    "unmatched rows are lost": (OUTER, '"left_outer"', '"inner"'),
    "an auction waits a moment too long": (JOIN, "< self._window_us:", "<= self._window_us:"),
}


@pytest.mark.spark
@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_oracle_catches(spark: Any, mutant: str) -> None:
    spec, old, new = MUTANTS[mutant]
    source = Path(queries.__file__).with_name(f"{spec.query}.py").read_text()
    assert source.count(old) == 1
    names: dict[str, Any] = {"__name__": "__main__"}  # so that Spark ships its classes by value
    exec(source.replace(old, new), names)
    given = events(COUNT, 0.2, LONGEST_S)
    frames = [spark.createDataFrame(given)] * workloads.find(spec.query).streams
    with settings(spark, {PROVIDER: ROCKSDB}):
        answer = names["query"](frames, spec).toArrow()
    assert size_and_hash(answer, Rule()) != size_and_hash(ask(spec, (given,) * len(frames)), Rule())


@pytest.mark.spark
def test_failures_count_in_their_window_and_the_next_three(spark: Any) -> None:
    """HEALTHY at minute 5, FAILURE at minute 12."""
    given = spark.createDataFrame(rows([5 * 60, 12 * 60], [1, 7], ["a", "a"]))
    windows = queries.run([given], replace(CUSTOM, window_us=600 * S))
    minutes = windows.selectExpr("minute(window_start)", "minute(window_end)", "events", "failures").collect()
    assert sorted(tuple(row) for row in minutes) == [
        (0, 10, 1, 0), (10, 20, 1, 1), (20, 30, 1, 1), (30, 40, 1, 1), (40, 50, 1, 1),
    ]  # fmt: skip


@pytest.mark.spark
def test_an_auction_that_came_before_its_person_comes_out_with_it_and_state_ends(spark: Any, tmp_path: Path) -> None:
    given = rows([100, 101, 105, 106, 114, 115, 140], [0, 0, 7, 0, 0, 0, 0], ["a"] * 7)
    run = stream(spark, JOIN, slices(given, 1), tmp_path / "run")
    pairs = [[(r["person_seq"], r["auction_seq"]) for r in micro.output.to_pylist()] for micro in run.batches]
    assert pairs == [[], [], [(2, 0), (2, 1)], [(2, 3)], [(2, 4)], [], [], [], []]
    assert run.batches[-1].operators[0].rows <= 1  # the sentinel's own


@pytest.mark.spark
def test_null_keys_meet_nobody_and_hide_nothing_from_the_watermark(spark: Any, tmp_path: Path) -> None:
    given = rows([0, 1, 2, 3], [1, 2, 3, 4], [None, None, "a", "b"])
    outer, _ = judge(spark, OUTER, "batch", given, 4, tmp_path)
    assert outer.rows == 2  # the left half: seconds 0 and 2
    inner, _ = judge(spark, replace(OUTER, query="windowed_join"), "batch", given, 4, tmp_path)
    assert inner.rows == 0
    run = stream(spark, OUTER, slices(given, 2), tmp_path / "run")
    assert sorted((r["left_seq"], r["right_seq"]) for r in run.output.to_pylist()) == [(0, None), (2, None)]


@pytest.mark.spark
def test_a_late_event_whose_session_has_come_out_begins_another(spark: Any, tmp_path: Path) -> None:
    """Sessions end 3 s after their last event. At watermark 4 comes 2: late for [0, 3), already out, not for [2, 5)."""
    given = rows([0, 4, 30, 2], [1] * 4, ["a", "a", "b", "a"])
    run = stream(spark, SESSIONS, slices(given, 1), tmp_path / "run")
    windows = [(r["window_start"].second, r["window_end"].second, r["events"]) for r in run.output.to_pylist()]
    assert windows == [(0, 3, 1), (2, 7, 2), (30, 33, 1)]
    parts = expectation(offered(given), run.logs(), SESSIONS, queries.rules(SESSIONS)).parts
    assert [part.frames[0]["seq"].to_pylist() for part in parts] == [[0, 2], [1, 3]]
    wanted = expectation(offered(given), run.logs(), SESSIONS, queries.rules(SESSIONS))
    assert size_and_hash(run.output, Rule()) == size_and_hash(answer(wanted), Rule())
    assert wanted.wrong_watermark is None


def test_a_session_may_end_before_a_late_event_that_belonged_to_it() -> None:
    def dealt(*events: tuple[str, float, int, float]) -> list[int]:
        keys, seconds, batches, late = zip(*events, strict=True)
        times = [np.array([round(x * S) for x in numbers], np.int64) for numbers in (seconds, late)]
        found = deals(pa.chunked_array([list(keys)]), times[0], np.array(batches), times[1], 5 * S)
        return [int(one) for one in found]

    assert dealt(("a", 0, 0, 0), ("a", 20, 0, 0), ("a", 5, 1, 0)) == [0, 0, 0]
    # [0, 5) had ended at 5 and came out; [3, 8) had not
    assert dealt(("a", 0, 0, 0), ("b", 3, 2, 5), ("a", 3, 2, 5), ("a", 9, 2, 5)) == [0, 0, 1, 0]
    # late events bridge two live sessions
    assert dealt(("a", 0, 0, 0), ("a", 10, 0, 0), ("a", 5, 1, 4), ("a", 16, 2, 16), ("a", 12, 2, 16)) == [0, 0, 0, 1, 1]


Event = tuple[int, int, int]  # key, second, batch


def sessions_one_by_one(events: list[Event], late: list[int], gap: int) -> set[frozenset[int]]:
    """Adds events one by one: sessions that ended before the batch stay as they are, touching ones are joined."""
    ended: list[frozenset[int]] = []
    live: list[frozenset[int]] = []
    for batch, watermark in enumerate(late):
        ended += [one for one in live if max(events[n][1] for n in one) + gap <= watermark]
        live = [one for one in live if max(events[n][1] for n in one) + gap > watermark]
        for number, (key, second, taken) in enumerate(events):
            if taken == batch:
                near = [o for o in live if any(events[n][0] == key and abs(events[n][1] - second) <= gap for n in o)]
                live = [one for one in live if one not in near] + [frozenset({number}).union(*near)]
    return {*ended, *live}


@unhurried(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 30), st.integers(0, 3)), min_size=1, max_size=25),
    st.lists(st.integers(0, 12), min_size=3, max_size=3),
)
def test_dealt_events_have_the_sessions_that_they_had_in_their_batches(some: list[Event], moved: list[int]) -> None:
    gap, late = 3, [0, *accumulate(moved)]
    events = [event for event in some if event[1] + gap > late[event[2]]]
    columns = np.array(events, np.int64).reshape(-1, 3).T
    keys, seconds, batches = columns
    dealt = deals(pa.chunked_array([keys]), seconds, batches, np.array(late)[batches], gap).tolist()
    sessions: dict[tuple[int, int, int], set[int]] = {}
    last: dict[tuple[int, int], tuple[int, int]] = {}  # of key and deal: the time before, how many sessions
    for number in sorted(range(len(events)), key=lambda n: events[n][1]):
        place = (events[number][0], dealt[number])
        before, count = last.get(place, (-100, 0))
        last[place] = events[number][1], count + (events[number][1] > before + gap)
        sessions.setdefault((*place, last[place][1]), set()).add(number)
    assert {frozenset(one) for one in sessions.values()} == sessions_one_by_one(events, late, gap)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slide": "5s"}, "workloads.w.slide: custom_windows has no sliding windows; leave it out"),
        ({"mark": None}, "workloads.w.mark: custom_windows needs it: the name of failures"),
        ({"value": "price"}, "workloads.w.value: price is a float; marks cannot be floats; allowed: name, amount"),
        ({"query": "sessions", "value": "name"}, "workloads.w.value: name is not numeric; allowed: amount, price"),
        (
            {"query": "deduplication", "window": "3s", "watermark": "2s"},
            "workloads.w.watermark: deduplication needs 3s or more, its window",
        ),
    ],
)
def test_a_workload_that_cannot_be_is_told_in_one_line(change: dict[str, Any], message: str) -> None:
    given = {"name": "w", "query": "custom_windows", "key": "name", "value": "name", "mark": "b"} | change
    with pytest.raises(UserError) as problem:
        Spec.of(Workload.model_validate(given), {"name": "string", "amount": "int64", "price": "float64"})
    assert str(problem.value) == message


def test_a_batch_judges_rows_by_the_watermark_before_its_own_or_where_all_operators_share_one_by_its_own() -> None:
    micro = [MicroBatch(n, 0, pa.table({}), ms, ({},), (), 0.0) for n, ms in ((0, 5), (1, 9))]
    for one_watermark, microseconds in ((False, [0, 5000]), (True, [5000, 9000])):
        rules = queries.rules(CHAINED, one_watermark=one_watermark)
        assert late_watermarks_us(np.array([0, 1]), FiniteRun(tuple(micro)).logs(), rules).tolist() == microseconds


def test_every_hard_query_is_in_the_capability_matrix() -> None:
    assert tuple(spec.query for spec in SPECS) == HARD
    assert all(workloads.find(name).features for name in HARD)
