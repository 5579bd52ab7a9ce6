"""The sentence of a comparison, for each kind of interval."""

from __future__ import annotations

import pytest

from streamgauge.config import Cell
from streamgauge.records.comparison import Comparison
from streamgauge.stats.paired import Ratio

BASE, LATE = (Cell(experiment=name, workload="w", system="s") for name in ("ordered", "late"))


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (None, "what it costs against ordered is not known: too few windows in turns were measured"),
        (
            Ratio(1.001, 0.984, 1.018, 6, 1),
            "against ordered no cost shows: the rate is between 1.6% lower and 1.8% higher",
        ),
        (Ratio(0.93, 0.91, 0.95, 6, 1), "against ordered it costs 7.0% (5.0% to 9.0%)"),
        (Ratio(1.05, 1.03, 1.08, 6, 1), "against ordered it gains 5.0% (3.0% to 8.0%)"),
    ],
)
def test_it_says_no_more_than_the_interval(found: Ratio | None, sentence: str) -> None:
    assert Comparison.of(LATE, BASE, found).sentence == sentence


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            None,
            "in p99 latency of one process, what it costs against ordered is not known: "
            "too few windows in turns were measured",
        ),
        (
            Ratio(1.001, 0.984, 1.018, 6, 1),
            "in p99 latency of one process, against ordered no cost shows: it is between 1.6% lower and 1.8% higher",
        ),
        (Ratio(1.07, 1.05, 1.09, 6, 1), "in p99 latency of one process, against ordered it costs 7.0% (5.0% to 9.0%)"),
        (Ratio(0.95, 0.92, 0.97, 6, 1), "in p99 latency of one process, against ordered it gains 5.0% (3.0% to 8.0%)"),
    ],
)
def test_a_longer_latency_is_a_cost(found: Ratio | None, sentence: str) -> None:
    assert Comparison.of(LATE, BASE, found, "p99").sentence == sentence
