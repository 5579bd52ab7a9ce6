"""A watermark for each key: an event below it is late, whatever its window."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.bench.oracle.batches import BatchLog
from streamgauge.bench.oracle.late_rows import Unknowable, below_own_key, expectation
from streamgauge.bench.workloads import Spec
from streamgauge.records.rules import Operator, Rules

SPEC = Spec("windowed_aggregation", "name", "amount", window_us=10_000_000, watermark_ms=2_000)
RULES = Rules((Operator("event"),), SPEC.watermark_ms * 1000, "own key")


def rows(events: list[tuple[str | None, int]], queues: int = 1) -> pa.Table:
    """events: key and event time in µs, as they were offered."""
    count = len(events)
    return pa.table(
        {
            "partition": np.arange(count) % queues,
            "row": np.arange(count) // queues,
            "name": pa.array([key for key, _ in events], pa.string()),
            "event_ts": pa.array([us for _, us in events], pa.timestamp("us", "UTC")),
        }
    )


@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(-20_000_000, 20_000_000)), max_size=60))
def test_it_is_the_largest_time_of_the_key_so_far_minus_the_delay(events: list[tuple[str | None, int]]) -> None:
    wanted = [us < max(u for k, u in events[: n + 1] if k == key) - 2_000_000 for n, (key, us) in enumerate(events)]
    assert below_own_key(rows(events), SPEC, RULES).tolist() == wanted


def test_a_late_event_counts_once_and_is_in_no_window() -> None:
    table = rows([("a", 19_000_000), ("b", 1_000_000), ("a", 12_000_000), ("a", 17_000_000)])
    found = expectation(table, [BatchLog(0, ({0: 4},), 0)], SPEC, RULES)
    [part] = found.parts
    assert (found.late, found.wrong_watermark, found.watermarks_checked) == (1, None, True)
    assert part.frames[0]["name"].to_pylist() == ["a", "b", "a"]


def test_of_several_queues_the_order_is_not_known() -> None:
    with pytest.raises(Unknowable, match="order of events is not known"):
        expectation(rows([("a", 1), ("a", 2)], queues=2), [BatchLog(0, ({0: 1, 1: 1},), 0)], SPEC, RULES)
