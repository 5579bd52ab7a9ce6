"""Tests metrics: merged in any order, named, scoped to steps, made while running; the driver's own code counts."""

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import metrics
from streamgauge.base.errors import UserError
from streamgauge.metrics import registry as registry_module
from streamgauge.metrics.pipeline import Pipeline
from streamgauge.metrics.registry import Batch, Registry
from streamgauge.metrics.values import Cells, Count, Key, Latest, Spread, decode, encode, merge_into, spread_of

INT = st.integers(-(2**63), 2**63 - 1)


@pytest.fixture
def pipeline() -> Iterator[Pipeline]:
    with metrics.start(name="test") as started:
        yield started


def values(pipeline: Pipeline, **filters: str) -> dict[tuple[str, str, str], object]:
    return {(m.namespace, m.name, m.step): m.committed for m in pipeline.query(**filters)}


@given(st.lists(st.lists(INT, min_size=1), min_size=1))
def test_a_distribution_is_exact_over_batches_of_any_integers(batches: list[list[int]]) -> None:
    total = Spread()
    for batch in batches:
        total.merge(spread_of(np.array(batch, np.int64)))
    every = [value for batch in batches for value in batch]
    assert total == Spread(len(every), sum(every), min(every), max(every))
    assert total.figures()["mean"] == sum(every) / len(every)


@given(st.lists(st.one_of(st.none(), st.floats(-1e100, 1e100), st.sampled_from([math.nan, math.inf]))))
def test_what_is_no_finite_number_is_left_out(values: list[float | None]) -> None:
    kept = [value for value in values if value is not None and math.isfinite(value)]
    for form in (pa.array(values, pa.float64(), from_pandas=False), values):
        spread = spread_of(form)
        assert spread.count == len(kept)
        if kept:
            assert (spread.min, spread.max) == (min(kept), max(kept))
            exact, size = sum(map(Fraction, kept)), sum(map(abs, kept))
            assert abs(Fraction(spread.sum) - exact) <= size * 1e-12


@pytest.mark.parametrize(
    ("values", "spread"),
    [
        (np.array([1, 2, "NaT"], "m8[ns]"), Spread(2, 3, 1, 2)),
        (np.array([1, "NaT"], "M8[ns]"), Spread(1, 1, 1, 1)),
        (np.array([True, False]), Spread(2, 1, 0, 1)),
        (["a", "12"], Spread()),
        (np.full(3, 60_000, np.float16), Spread(3, 180_000.0, 60_000.0, 60_000.0)),
    ],
)
def test_values_of_other_types(values: Any, spread: Spread) -> None:
    assert spread_of(values) == spread


def test_a_gauge_of_a_time_that_no_calendar_has_is_left_out(pipeline: Pipeline) -> None:
    metrics.gauge("n", "late").set(1.0, at_ns=10**21)
    metrics.gauge("n", "right").set(2.0, at_ns=10**18)
    assert [metric.name for metric in pipeline.query("n")] == ["right"]


@given(st.permutations([(3, 10), (5, 7), (5, 8), (1, 99)]))
def test_a_gauge_keeps_the_latest_whatever_comes_last(updates: list[tuple[int, int]]) -> None:
    gauge = Latest()
    for at_ns, value in updates:
        gauge.merge(Latest(value, at_ns))
    assert gauge == Latest(8, 5)


def test_cells_travel_unchanged() -> None:
    cells: Cells = {}
    merge_into(cells, Key("counter", "n", "a", "s"), Count(2**70))
    merge_into(cells, Key("distribution", "n", "b", "s"), Spread(2, 3.5, 1, 2.5))
    merge_into(cells, Key("gauge", "n", "c", "s"), Latest(-1, 12))
    assert decode(encode(cells)) == cells


def test_steps_nest_and_queries_filter(pipeline: Pipeline) -> None:
    metrics.counter("shop", "rows").inc(1)
    with metrics.step("read"):
        metrics.counter("shop", "rows").inc(2)
        metrics.counter("shop", "bytes").inc(3)
        with metrics.step("split"):
            metrics.counter("shop", "rows").inc(4)
    with metrics.step("reader"):
        metrics.counter("other", "rows").dec(5)
    assert values(pipeline) == {
        ("shop", "rows", "main"): {"value": 1},
        ("shop", "rows", "read"): {"value": 2},
        ("shop", "bytes", "read"): {"value": 3},
        ("shop", "rows", "read/split"): {"value": 4},
        ("other", "rows", "reader"): {"value": -5},
    }
    assert set(values(pipeline, step="read", name="rows")) == {("shop", "rows", "read"), ("shop", "rows", "read/split")}
    assert set(values(pipeline, namespace="other")) == {("other", "rows", "reader")}
    assert metrics.query(step="read/split") == pipeline.query(step="read/split") != ()


def test_a_generators_step_holds_for_its_own_code_alone(pipeline: Pipeline) -> None:
    @metrics.step("inner")
    def numbers() -> Iterator[int]:
        for number in range(3):
            metrics.counter("n", "made").inc()
            yield number

    with metrics.step("outer"):
        for _ in numbers():
            metrics.counter("n", "taken").inc()
    assert values(pipeline) == {("n", "made", "inner"): {"value": 3}, ("n", "taken", "outer"): {"value": 3}}


def test_handles_are_values_and_names_are_checked() -> None:
    assert pickle.loads(pickle.dumps(metrics.gauge("a", "b"))) == metrics.gauge("a", "b")
    for wrong in ("", "line\nbreak", "x" * 201):
        with pytest.raises(ValueError, match="printable"):
            metrics.counter("n", wrong)
        with pytest.raises(ValueError, match="printable"):
            metrics.step(wrong)


def test_threads_lose_nothing_and_the_finished_pipeline_answers() -> None:
    def count() -> None:
        for _ in range(2000):
            metrics.counter("n", "c").inc()

    with metrics.start(name="threads") as pipeline:
        work = [threading.Thread(target=count) for _ in "abcd"]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        with pytest.raises(UserError, match="are already running in this process"):
            metrics.start(name="second")
    assert pipeline.query()[0].attempted == {"value": 8000}
    with metrics.start(name="next"):
        assert metrics.query() == ()


# -- the registry alone, told in other orders than Spark happens to use


def report(
    run: str, number: int, rows: int, *, ended: bool = False, partition: int = 0, attempt: int = 0, **more: object
) -> Any:
    base = {"run": run, "number": number, "partition": partition, "attempt": attempt, "ended": ended}
    batch = {"query": None, "batch": None, "query_run": None}
    return base | batch | {"cells": encode({Key("counter", "n", "rows", "s"): Count(rows)})} | more


def counted(registry: Registry) -> tuple[int | None, int | None]:
    [metric] = registry.query()
    return metric.attempted["value"], None if metric.committed is None else metric.committed["value"]


def test_repeated_late_and_overtaken_reports_count_once() -> None:
    registry = Registry()
    registry.heard(report("r1", 2, 20))
    registry.heard(report("r1", 1, 10))  # overtaken
    assert counted(registry) == (20, None)
    registry.succeeded(report("r1", 4, 30, ended=True), "stage")
    registry.heard(report("r1", 3, 25, ended=True))
    registry.heard(report("r1", 3, 25, ended=True))
    assert counted(registry) == (30, 30)


def test_of_a_partition_the_first_finished_attempt_counts_with_all_its_workers() -> None:
    registry = Registry()
    registry.succeeded(report("a", 1, 1, attempt=7), "stage")
    registry.succeeded(report("b", 1, 2, attempt=7), "stage")  # a second worker of the same attempt
    registry.succeeded(report("c", 1, 3, attempt=8), "stage")  # a speculative copy, or a rerun
    registry.succeeded(report("d", 1, 4, attempt=9, partition=1), "stage")
    assert counted(registry) == (10, 7)


def test_a_batch_counts_when_it_is_finished_and_in_its_last_run() -> None:
    registry = Registry()

    def tell(run: str, rows: int, batch: int, query_run: str) -> None:
        registry.succeeded(report(run, 1, rows, query="q", batch=str(batch), query_run=query_run), "stage")

    tell("a", 10, 0, "first")
    assert counted(registry) == (10, None)
    registry.finished(Batch("q", 0))
    tell("b", 5, 1, "first")
    tell("c", 6, 1, "second")  # restarted before batch 1 was finished
    assert counted(registry) == (21, 10)
    tell("d", 7, 2, "second")  # that a later batch runs says that batch 1 is finished
    assert counted(registry) == (28, 16)
    tell("e", 6, 1, "third")  # stale news of a finished batch
    assert counted(registry) == (34, 16)


def test_memory_is_bounded_and_nothing_is_lost_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "LIVE_RUNS", 10)
    registry = Registry()
    for number in range(100):
        registry.heard(report(f"killed {number}", 1, 1))
    assert len(registry._live) == 10
    assert counted(registry) == (100, None)
