"""A watermark for each key: the engine's operator says what is late by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.bench.oracle.batches import BatchLog
from streamgauge.bench.oracle.late_rows import Unknowable, expectation
from streamgauge.bench.workloads import Spec
from streamgauge.records.rules import Operator, Pace, Rules

SPEC = Spec("windowed_aggregation", "name", "amount", window_us=10_000_000, watermark_ms=2_000)
RULES = Rules((Operator("event"),), SPEC.watermark_ms * 1000, "own key")
DECLARED = {
    "below it": RULES,
    "at it, too": replace(RULES, equal_is_late=True),
    "the window has ended": replace(RULES, operators=(Operator("window", 10_000_000, 10_000_000),)),
    "nothing": replace(RULES, operators=(Operator("never"),)),
    "begins": replace(RULES, begins_ms=3_000),
    "whole seconds": replace(RULES, pace=Pace(step_us=1_000_000)),
}


def rows(events: list[tuple[str | None, int]], queues: int = 1) -> pa.Table:
    """events: key and event time in µs, as they were offered."""
    count = len(events)
    return pa.table(
        {
            "partition": np.arange(count) % queues,
            "row": np.arange(count) // queues,
            "seq": np.arange(count),
            "name": pa.array([key for key, _ in events], pa.string()),
            "event_ts": pa.array([us for _, us in events], pa.timestamp("us", "UTC")),
        }
    )


def late(us: int, watermark_us: int, rules: Rules) -> bool:
    """Says of one event whether it is late, in plain words."""
    [operator] = rules.operators
    if operator.kind == "window":
        return us // 10_000_000 * 10_000_000 + 10_000_000 <= watermark_us
    return operator.kind == "event" and (us < watermark_us or (rules.equal_is_late and us == watermark_us))


@pytest.mark.parametrize("declared", DECLARED)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", None]), st.integers(-20, 20).map(lambda half: half * 500_000)),
        min_size=1, max_size=40,
    )
)  # fmt: skip
def test_it_is_the_largest_time_of_the_key_so_far_minus_the_delay(
    declared: str, events: list[tuple[str | None, int]]
) -> None:
    rules, kept = DECLARED[declared], []
    for n, (key, us) in enumerate(events):
        largest = max(other for other_key, other in events[: n + 1] if other_key == key)
        watermark_us = max(largest // rules.pace.step_us * rules.pace.step_us - 2_000_000, rules.begins_ms * 1000)
        kept += [] if late(us, watermark_us, rules) else [n]
    found = expectation(rows(events), [BatchLog(0, ({0: len(events)},), 0)], SPEC, rules)
    assert found.parts[0].frames[0]["seq"].to_pylist() == kept
    assert (found.late, found.late_events) == ((len(events) - len(kept),) * 2)


def test_a_late_event_counts_once_and_is_in_no_window() -> None:
    table = rows([("a", 19_000_000), ("b", 1_000_000), ("a", 12_000_000), ("a", 17_000_000)])
    found = expectation(table, [BatchLog(0, ({0: 4},), 0)], SPEC, RULES)
    [part] = found.parts
    assert (found.late, found.wrong_watermark, found.watermarks_checked) == (1, None, True)
    assert part.frames[0]["name"].to_pylist() == ["a", "b", "a"]


def test_of_several_queues_the_order_is_not_known() -> None:
    with pytest.raises(Unknowable, match="order of events is not known"):
        expectation(rows([("a", 1), ("a", 2)], queues=2), [BatchLog(0, ({0: 1, 1: 1},), 0)], SPEC, RULES)


def test_of_sessions_the_answer_is_not_known() -> None:
    declared = replace(RULES, operators=(Operator("session", 3_000_000),))
    with pytest.raises(Unknowable, match="when its sessions close is not known"):
        expectation(rows([("a", 1)]), [BatchLog(0, ({0: 1},), 0)], SPEC, declared)
