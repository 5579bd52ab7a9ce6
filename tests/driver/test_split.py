"""Tests the parts of the latency against numbers worked out by hand. Times in the tables are seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.split import PARTS, Plans, overall

S = 10**9
#: three hand-overs, each of what was offered since the one before
PLANS = [(1 * S, 1.0, 0, 0), (2 * S, 1.0, 0, 0), (3 * S, 1.0, 0, 0)]


def histogram(*latencies: float) -> Histogram:
    found = Histogram()
    found.add(np.array([round(latency * S) for latency in latencies], np.int64))
    return found


def split(emitted: float, offered: list[float], event: list[float], batch: Any) -> dict[str, float | None]:
    """Rows that were all emitted at once, with the walls of their latest contributors; parts in s."""
    own, other = histogram(*(emitted - e for e in event)), histogram(*(emitted - o for o in offered))
    at = round(emitted * S)
    found = Plans(PLANS).split((at, at), at, own, other, batch)
    assert found is not None
    return {part: None if value is None else value / S for part, value in found.items()}


def batch(at: float, rows: int, seconds: float) -> dict[str, Any]:
    return {"at": at, "rows": rows, "duration_ms": round(seconds * 1000)}


def test_a_window_waits_in_the_queue_then_for_the_watermark_then_for_its_batch() -> None:
    # emitted at 2.6 by the batch planned at 2: one window's last event came at 0.4 and went with the batch before,
    # the other's at 1.5, and was 0.2 out of order
    found = split(2.6, [0.4, 1.5], [0.4, 1.3], batch(1.99, 100, 0.8))
    assert found == pytest.approx(
        {"disorder": 0.1, "queue_wait": 0.55, "watermark_hold": 0.5, "micro_batch": 0.6, "commit": 0.19}, abs=0.001
    )


def test_a_batch_that_takes_nothing_begins_when_the_engine_says() -> None:
    found = split(2.6, [1.5], [1.5], batch(2.4, 0, 0.3))
    assert found == pytest.approx(
        {"disorder": 0, "queue_wait": 0.5, "watermark_hold": 0.4, "micro_batch": 0.2, "commit": 0.1}, abs=0.001
    )


def test_without_batches_hold_and_commit_are_not_known() -> None:
    # emitted at 3.1: offered at 0.8 (planned at 1) and at 2.7 (planned at 3)
    found = split(3.1, [0.8, 2.7], [0.8, 2.7], None)
    assert (found["watermark_hold"], found["commit"]) == (None, None)
    assert found["queue_wait"] == pytest.approx(0.25, abs=0.001)
    assert found["micro_batch"] == pytest.approx(1.1, abs=0.001)


@pytest.mark.parametrize("seed", range(5))
def test_parts_add_up_to_the_mean_event_time_latency(seed: int) -> None:
    draw = np.random.default_rng(seed)
    offered = draw.uniform(0, 3, 200)
    event = offered - draw.exponential(0.1, 200)
    found = split(3.4, list(offered), list(event), batch(2.995, 50, 0.5))
    assert sum(found[part] or 0 for part in PARTS[:-1]) == pytest.approx(float(np.mean(3.4 - event)), abs=1e-5)
    exact = [np.ceil(o) - o for o in offered]  # the plan after each offer
    assert found["queue_wait"] == pytest.approx(float(np.mean(exact)), abs=0.02)


def test_nothing_emitted_or_nothing_planned_tells_nothing() -> None:
    assert Plans(PLANS).split((0, 0), 0, Histogram(), Histogram(), None) is None
    assert Plans([]).split((5, 5), 5, histogram(1), histogram(1), None) is None


def test_the_whole_is_the_mean_over_rows_of_what_is_known() -> None:
    one = dict.fromkeys(PARTS, 10.0)
    other = {**dict.fromkeys(PARTS, 40.0), "commit": None}
    assert overall([(1, one), (2, other), (0, one), (5, None)]) == {**dict.fromkeys(PARTS, 30.0), "commit": 10.0}
    assert overall([]) == dict.fromkeys(PARTS)
