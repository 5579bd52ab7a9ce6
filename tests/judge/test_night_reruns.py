"""Repetitions of a night: what they measure and in which order, and those of a subject against itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from streamgauge.app.nights import night as night_module
from streamgauge.app.nights.reruns import Subject, in_turns, is_rerun, of_cell
from streamgauge.bench.answers import rerun
from streamgauge.bench.answers.figures import SECONDS
from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.measurements.search.stage import PER_UNIT, RATE
from tests.index.example import judgement_rows
from tests.judge.nights import P50, PAUSE, PLAN, night_of, write_nights
from tests.measure.benches import CELL, write_bench
from tests.measure.conftest import _alone_and_quick

__all__ = ["_alone_and_quick"]

SUBJECT = Subject(CELL.experiment, CELL.workload, CELL.system, "streaming")


def test_what_a_rerun_measures() -> None:
    own = (P50, "event_latency_ms_max_at_500_per_s", "system_cpu_us_per_event_at_90pct", RATE, PER_UNIT, SECONDS)
    others = (PAUSE, "longest_pause_s_at_50pct", "event_latency_ms_mean_at_50pct", "event_latency_ms_p50", "")
    assert ([is_rerun(one) for one in own], [is_rerun(one) for one in others]) == ([True] * 6, [False] * 5)


def test_a_cell_and_a_query_of_one_name_are_tested_apart_and_stand_beside_the_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repetitions of a cell are measured in the tests below."""
    bench = write_bench(
        tmp_path, delay="100ms", capacity=40_000, **{**PLAN, "nightly": {"repetitions": [4], "self_tests": 2}}
    )
    write_nights(bench, 110.0, 1.0, seconds=2.0)
    monkeypatch.setattr(rerun, "seconds", lambda *_: {SECONDS: 2.0})
    monkeypatch.setattr(night_module, "of_cell", lambda *_: lambda: {P50: 110.0, RATE: 2000.0})
    night = replace(night_of(bench), session=lambda: cast(Any, None))
    said = {line.what.rpartition(" ")[2]: (line.state, line.said) for line in night.judge()}
    assert set(said) == {P50, RATE, SECONDS}
    for state, words in said.values():
        assert (state, words[:11], "noise floor" in words) == ("self", "A/A: +0.0 %", True)
    (key,) = (head.key for head in night.index.series(metric=RATE))
    (rate,) = judgement_rows(night.index, key)
    assert rate["outcome"] == "self"
    assert len(rate["evidence"]["baseline"]) == len(rate["evidence"]["candidate"]) == 4


def test_a_rerun_measures_at_parts_of_the_rate_and_at_rates_of_all_cells(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = {"fractions": [0.2, 0.5, 0.9], "rates": [500], "seconds": 0.4}
    bench = write_bench(tmp_path, **{**PLAN, "latency": loads})
    offered = []
    trial = ReadyCell.trial

    def told(self: ReadyCell, rate: float, *more: Any, **named: Any) -> Any:
        offered.append(rate)
        return trial(self, rate, *more, **named)

    monkeypatch.setattr(ReadyCell, "trial", told)
    at_500 = "system_cpu_us_per_event_at_500_per_s"
    for metrics, loads_of in ([P50], [400, 1000]), ([P50, at_500], [400, 1000, 1800, 500]):
        offered.clear()
        assert set(of_cell(bench.benchmark, bench.store, SUBJECT, metrics, 2000.0, "n")()) == set(metrics)
        assert offered == pytest.approx(loads_of), "a trial of the night followed the same trials"


def test_a_rerun_of_the_rate_runs_a_ladder_beside_the_trials(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, delay="100ms", capacity=40_000, **PLAN)
    values = of_cell(bench.benchmark, bench.store, SUBJECT, [P50, RATE], 2000.0, "n")()
    assert set(values) == {P50, RATE}
    assert values[RATE] > 2000, "it is the rate of this process, and not that of the nights"


def test_turns_alternate() -> None:
    order: list[str] = []

    def side(name: str) -> Any:
        def measured() -> dict[str, float]:
            order.append(name)
            return {"m": float(len(order))}

        return measured

    assert in_turns(side("a"), side("b"), 2) == ([{"m": 1.0}, {"m": 3.0}], [{"m": 2.0}, {"m": 4.0}])
    assert order == ["a", "b", "a", "b"]
