"""Compares what a stream loses at its own speed with a slow count, event by event, with DuckDB and given figures."""

from __future__ import annotations

from itertools import accumulate
from random import Random

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.records.loss import Loss
from streamgauge.streams.lateness.loss import LateRule, LossCount, loss
from streamgauge.streams.lateness.pace import IDEAL, Ints, Pace
from tests.lateness import slow

#: the cadences of a watermark after each event, at intervals, and with micro-batches
PACES = st.builds(
    Pace,
    interval_us=st.sampled_from([0, 1, 4, 10]),
    behind=st.integers(1, 2),
    step_us=st.sampled_from([1, 3]),
    least_us=st.sampled_from([None, 0, -20]),
    each_queue=st.booleans(),
    equal_is_late=st.booleans(),
    joins_first=st.booleans(),
)
STREAMS = st.lists(st.tuples(st.integers(-60, 60), st.integers(0, 9)), max_size=30).map(
    lambda rows: [*zip((event for event, _ in rows), accumulate(gap for _, gap in rows), strict=True)]
)


def counted(
    events: list[slow.Event], rule: LateRule, pace: Pace, queues: int, pieces: int, keys: list[int] | None = None
) -> Loss:
    """The library's count of a stream that is given in pieces."""
    count = LossCount(rule, pace, queues)
    for part in np.array_split(np.arange(len(events)), pieces):
        table = np.array([events[i] for i in part], np.int64).reshape(-1, 2)
        own = None if keys is None else np.array([keys[i] for i in part], np.int64)
        count.add(table[:, 0], table[:, 1], keys=own)
    return count.loss()


def marks_of(events: list[slow.Event], delay: int, pace: Pace, queues: int) -> list[int | None]:
    behind = pace.behind if pace.interval_us else 1
    return slow.watermarks(
        events, delay, pace.interval_us, behind, pace.step_us, pace.least_us, queues if pace.each_queue else 1
    )


@settings(max_examples=300)
@given(STREAMS, PACES, st.integers(0, 30), st.sampled_from([(6, 6), (6, 2), (9, 3), (1, 1)]), st.integers(1, 3),
       st.integers(1, 4))  # fmt: skip
def test_windows_lose_what_has_ended(
    events: list[slow.Event], pace: Pace, delay: int, window: tuple[int, int], queues: int, pieces: int
) -> None:
    lost = counted(events, LateRule("window", delay, *window), pace, queues, pieces)
    wanted = slow.windowed(events, marks_of(events, delay, pace, queues), *window)
    assert (lost.events, lost.partly, lost.windows, lost.of) == (*wanted, len(events))


@settings(max_examples=200)
@given(STREAMS, PACES, st.integers(0, 30), st.integers(1, 3), st.integers(1, 4))
def test_events_below_the_watermark_are_lost(
    events: list[slow.Event], pace: Pace, delay: int, queues: int, pieces: int
) -> None:
    lost = counted(events, LateRule("event", delay), pace, queues, pieces)
    assert lost.events == slow.below(events, marks_of(events, delay, pace, queues), equal=pace.equal_is_late)
    assert lost.windows is None


@settings(max_examples=300)
@given(STREAMS, PACES, st.integers(0, 20), st.integers(1, 8), st.integers(1, 3), st.randoms(use_true_random=False))
def test_sessions_lose_what_has_ended_after_they_have_merged_or_before(
    events: list[slow.Event], pace: Pace, delay: int, gap: int, queues: int, chance: Random
) -> None:
    keys = [chance.randrange(3) for _ in events]
    lost = counted(events, LateRule("session", delay, gap), pace, queues, 1, keys)
    marks = marks_of(events, delay, pace, queues)
    wanted = slow.joined(events, keys, marks, gap) if pace.joins_first else slow.alone(events, marks, gap)
    assert lost.events == wanted


S = 1_000_000  # µs


def late_stream(count: int, seed: int = 1) -> tuple[Ints, Ints]:
    """Event and arrival times, µs: an event a second, of which 3 % come up to 15 minutes late."""
    draw = np.random.default_rng(seed)
    event = np.arange(count) * S + draw.integers(0, S, count)
    arrival = event + np.where(draw.random(count) < 0.03, draw.integers(S, 900 * S, count), 0)
    order = np.argsort(arrival, kind="stable")
    return event[order], arrival[order]


#: how SQL tells the events that an event's watermark follows
FRAMES = {
    IDEAL: "order by i rows between unbounded preceding and 1 preceding",
    Pace("interval", 200_000): "order by arrival // 200000 range between unbounded preceding and 1 preceding",
    Pace("micro-batch", 10 * S, 2): "order by arrival // 10000000 range between unbounded preceding and 2 preceding",
}
#: when SQL calls an event lost
LOST = {
    LateRule("window", 10 * S, 60 * S, 60 * S): "event // 60000000 * 60000000 + 60000000 <= watermark",
    LateRule("window", 10 * S, 600 * S, 60 * S): "event // 60000000 * 60000000 + 600000000 <= watermark",
    LateRule("event", 10 * S): "event < watermark",
    LateRule("never", 10 * S): "false",
}


@pytest.mark.parametrize("rule", LOST, ids=lambda rule: f"{rule.kind}-{rule.slide_us // S}-of-{rule.length_us // S}")
@pytest.mark.parametrize("pace", FRAMES, ids=lambda pace: pace.kind)
def test_duckdb_counts_the_same(pace: Pace, rule: LateRule) -> None:
    event, arrival = late_stream(20_000)
    lost = loss(event, arrival, rule, pace)
    base = duckdb.connect()
    base.register("stream", {"i": np.arange(len(event)), "event": event, "arrival": arrival})
    sql = f"select max(event) over ({FRAMES[pace]}) - 10000000 as watermark, event from stream"
    assert base.execute(f"select count(*) filter (where {LOST[rule]}) from ({sql})").fetchone() == (lost.events,)
    assert (lost.events > 300) == (rule.kind != "never" and rule.slide_us in (0, rule.length_us))


def test_the_count_is_of_the_events_that_a_query_reads_and_the_watermark_follows_all() -> None:
    rule = LateRule("window", 0, 20, 10)
    event, arrival = np.array([5, 31, 6, 7, 12, 40, 21]), np.arange(7)
    count = LossCount(rule)
    read, narrow = np.array([0, 0, 1, 1, 1, 1, 1], bool), np.array([0, 0, 0, 1, 0, 0, 1], bool)
    lost = count.add(event, arrival, read=read, narrow=narrow)
    # 6: windows to 10 and 20 have ended at 31; 7: only that to 10; 12: that to 20, not that to 30; 21: that to 30
    assert lost.tolist() == [False, False, True, True, True, False, True]
    assert count.loss() == Loss(4, 5, "window", "a watermark after each event", 4, 3)


def test_the_sentence_has_the_count_the_share_and_the_cadence() -> None:
    lost = Loss(2712, 90_000, "window", Pace("micro-batch", S, 2).cadence, 2712, 14)
    assert lost.sentence == (
        "at the stream's own speed the query loses 2,712 of 90,000 events (3.0 %) in 14 windows, with a micro-batch "
        "every 1 s"
    )
    some = Loss(1, 8, "window", IDEAL.cadence, 3, 2)
    assert some.count == "1 of 8 events (12.5 %), and 2 more in some of their windows"
    assert Loss(0, 8, "never", IDEAL.cadence).sentence == "no event may be dropped at any speed, however late it is"
