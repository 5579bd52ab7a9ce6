"""Negative latencies: what the clocks may explain, and what makes a trial invalid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.observed import collect
from streamgauge.bench.driver.trial_request import TrialRequest
from streamgauge.config import Workload
from tests.driver.in_thread import WORKLOAD
from tests.driver.seen import observed

WINDOWED = Workload(name="windowed", query="windowed_aggregation")  # its answers wait for the watermark
REQUEST = TrialRequest(WORKLOAD, Path("."), 10, 1)
MS = 1_000_000


def invalid(
    *waits_ms: float,
    clock: list[int] | None = None,
    least: bool = True,
    wrong: str | None = None,
    step_ns: int = 0,
) -> str | None:
    waits = np.array([round(wait * MS) for wait in waits_ms])
    histogram = Histogram()
    histogram.add(waits[waits >= 0])
    body = {
        "rows": len(waits), "negative": int((waits < 0).sum()), "event_latency": histogram.to_dict(),
        "processing_latency": histogram.to_dict(), "emitted_wall_ns": [10**9, 2 * 10**9], "clock_offset_ns": clock,
    }  # fmt: skip
    if least:
        body["least_ns"] = min(0, int(waits.min()))
    seen = observed({0: body}, start_wall_ns=10**9, clock_step_ns=step_ns)
    return collect(REQUEST, [seen], {"check": {"wrong": wrong}}, []).invalid


@pytest.mark.parametrize("clock", [None, [-2 * MS, MS], [3 * MS, 0]])
def test_answers_before_their_events_make_a_trial_invalid(clock: list[int] | None) -> None:
    assert invalid(5, -4, 7, -1, clock=clock) == (
        "2 of 4 answers came before the events that they answer, by up to 0.004 s, more than the clocks may be off: "
        "they answer others, whose ids may be the same (replay.ids), or a clock was set"
    )


def test_what_the_clocks_error_explains_is_no_fault() -> None:
    assert invalid(5, -4, 7, clock=[-3 * MS, MS]) is None
    assert invalid(5, 0, 7) is None


def test_a_report_that_does_not_tell_its_lowest_latency_has_no_excuse() -> None:
    assert (invalid(5, -4, clock=[-3 * MS, MS], least=False) or "").startswith("1 of 2 answers came before")


def test_wrong_answers_come_first() -> None:
    assert invalid(5, -4, wrong="output wrong") is None


def test_a_clock_that_was_set_is_the_reason_before_all_others() -> None:
    assert invalid(5, 7, step_ns=100 * MS) is None
    assert invalid(5, -4, step_ns=101 * MS) == (
        "the driver's clock was set meanwhile, by 0.101 s in all, allowed: 0.1 s; let NTP adjust it slowly, or raise "
        "replay.max_clock_offset"
    )


def test_latencies_of_each_span_are_kept_apart_and_what_lies_between_counts_in_none() -> None:
    """Reports of five seconds, each of as many milliseconds; a report belongs to where its answers came out."""
    bodies = {}
    for second in range(1, 6):
        histogram = Histogram()
        histogram.add(np.array([second * MS] * second))
        at = second * 10**9
        bodies[second] = {
            "rows": second, "event_latency": histogram.to_dict(), "processing_latency": histogram.to_dict(),
            "emitted_wall_ns": [at, at],
        }  # fmt: skip
    seen = observed(bodies, start_wall_ns=1)
    spans = ((900 * MS, 2100 * MS), (3500 * MS, 4100 * MS), (6000 * MS, 7000 * MS))
    found = collect(replace(REQUEST, workload=WINDOWED), [seen], {}, [], spans)
    assert [one.event.count for one in found.spans] == [1 + 2, 4, 0]
    assert (found.spans[0].event.max, found.spans[1].event.max) == (2 * MS, 4 * MS)
    assert found.details["outside_event_latency_ns"]["count"] == 3 + 5
    assert [epoch["steady"] for epoch in found.details["epochs"]] == [True, True, False, True, False]
