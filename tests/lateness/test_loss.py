"""Compares what a stream loses at its own speed with a slow count, event by event, with DuckDB and given figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from random import Random

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from streamgauge.base.arrow import Ints
from streamgauge.bench.driver.figures import first_mistake
from streamgauge.records.loss import Loss
from streamgauge.records.rules import LEAST_MS, Operator, Pace, Rules
from streamgauge.streams.lateness.loss import LossCount, ends_of
from tests.lateness import slow

#: what an engine may declare: the cadences of a watermark after each event, at intervals, and with micro-batches
PACES = st.builds(
    lambda interval_us, *others: Pace("interval" if interval_us else "event", interval_us, *others),
    st.sampled_from([0, 1, 4, 10]),
    st.integers(1, 2),
    st.sampled_from([1, 3]),
)
DECLARED = st.builds(
    Rules,
    st.just((Operator("never"),)),
    st.integers(0, 30),
    st.sampled_from(["all queues", "least queue", "own queue"]),
    PACES,
    equal_is_late=st.booleans(),
    joins_first=st.booleans(),
    begins_ms=st.sampled_from([LEAST_MS, 0]),
)
STREAMS = st.lists(st.tuples(st.integers(-60, 60), st.integers(0, 9)), max_size=30).map(
    lambda rows: [*zip((event for event, _ in rows), accumulate(gap for _, gap in rows), strict=True)]
)


def counted(
    events: list[slow.Event], rules: Rules, queues: int = 1, pieces: int = 1, keys: list[int] | None = None
) -> Loss:
    """The library's count of a stream that is given in pieces."""
    count = LossCount(rules, queues)
    for part in np.array_split(np.arange(len(events)), pieces):
        table = np.array([events[i] for i in part], np.int64).reshape(-1, 2)
        own = None if keys is None else np.array([keys[i] for i in part], np.int64)
        count.add(table[:, 0], table[:, 1], keys=own)
    return count.loss()


def loss(event_us: Ints, arrival_us: Ints, rules: Rules, keys: Ints | None = None, queues: int = 1) -> Loss:
    """Returns the loss of a whole stream; both times in order of arrival."""
    count = LossCount(rules, queues)
    count.add(event_us, arrival_us, keys=keys)
    return count.loss()


def marks_of(events: list[slow.Event], rules: Rules, queues: int) -> list[int | None]:
    pace, least_us = rules.pace, None if rules.begins_ms == LEAST_MS else rules.begins_ms * 1000
    behind, parts = pace.behind if pace.interval_us else 1, 1 if rules.clock == "all queues" else queues
    return slow.watermarks(
        events, rules.delay_us, pace.interval_us, behind, pace.step_us, least_us, parts, own=rules.clock == "own queue"
    )


@given(STREAMS, DECLARED, st.sampled_from([(6, 6), (6, 2), (9, 3), (1, 1)]), st.integers(1, 3), st.integers(1, 4))
def test_windows_lose_what_has_ended(
    events: list[slow.Event], declared: Rules, window: tuple[int, int], queues: int, pieces: int
) -> None:
    rules = replace(declared, operators=(Operator("window", *window),))
    lost = counted(events, rules, queues, pieces)
    wanted = slow.windowed(events, marks_of(events, rules, queues), *window)
    assert (lost.events, lost.partly, lost.windows, lost.of) == (*wanted, len(events))


@given(STREAMS, DECLARED, st.integers(1, 3), st.integers(1, 4))
def test_events_below_the_watermark_are_lost(
    events: list[slow.Event], declared: Rules, queues: int, pieces: int
) -> None:
    rules = replace(declared, operators=(Operator("event"),))
    lost = counted(events, rules, queues, pieces)
    assert lost.events == slow.below(events, marks_of(events, rules, queues), equal=rules.equal_is_late)
    assert lost.windows is None


@given(STREAMS, DECLARED, st.integers(1, 8), st.integers(1, 3), st.randoms(use_true_random=False))
def test_sessions_lose_what_has_ended_after_they_have_merged_or_before(
    events: list[slow.Event], declared: Rules, gap: int, queues: int, chance: Random
) -> None:
    keys = [chance.randrange(3) for _ in events]
    rules = replace(declared, operators=(Operator("session", gap),))
    marks = marks_of(events, rules, queues)
    wanted = slow.joined(events, keys, marks, gap) if rules.joins_first else slow.alone(events, marks, gap)
    assert counted(events, rules, queues, keys=keys).events == wanted


@given(STREAMS, st.integers(0, 20), st.randoms(use_true_random=False))
def test_a_key_with_a_watermark_of_its_own_loses_what_is_below_it(
    events: list[slow.Event], delay: int, chance: Random
) -> None:
    keys = [chance.randrange(3) for _ in events]
    rules = Rules((Operator("event"),), delay, "own key")
    times = [event for event, _ in events]
    late = [
        event < max(other for other, own in zip(times[: n + 1], keys, strict=False) if own == keys[n]) - delay
        for n, event in enumerate(times)
    ]
    assert counted(events, rules, keys=keys).events == sum(late)


@given(STREAMS, st.integers(0, 20), st.sampled_from([(6, 6), (6, 2), (9, 3)]), st.integers(1, 3))
def test_a_window_ends_by_the_time_of_its_partition_and_a_grace_as_in_kafka_streams(
    events: list[slow.Event], grace: int, window: tuple[int, int], partitions: int
) -> None:
    """Against the algorithm of its KStreamWindowAggregate: stream time first, then each window of the event."""
    (length, advance), stream_time = window, dict[int, int]()
    events = [(event + 100, arrival) for event, arrival in events]  # of times before 0 Kafka knows nothing
    nowhere = partly = 0
    for n, (event, _) in enumerate(events):
        partition = n % partitions
        stream_time[partition] = max(stream_time.get(partition, event), event)
        starts = range(max(0, event - length + advance) // advance * advance, event + 1, advance)
        ended = [start + length <= stream_time[partition] - grace for start in starts]
        nowhere, partly = nowhere + all(ended), partly + any(ended)
    lost = counted(events, Rules((Operator("window", *window),), grace, "own queue"), partitions)
    assert (lost.events, lost.partly) == (nowhere, partly)


any_declared = given(
    STREAMS, DECLARED, st.sampled_from([Operator("window", 6, 2), Operator("event"), Operator("session", 5)]),
    st.integers(1, 3), st.randoms(use_true_random=False),
)  # fmt: skip


@any_declared
def test_at_no_pace_more_is_lost_than_with_a_watermark_after_each_event(
    events: list[slow.Event], declared: Rules, operator: Operator, queues: int, chance: Random
) -> None:
    keys = [chance.randrange(3) for _ in events]
    rules = replace(declared, operators=(operator,))
    lost, most = (counted(events, one, queues, keys=keys) for one in (rules, replace(rules, pace=Pace())))
    assert (lost.events <= most.events, lost.partly <= most.partly) == (True, True)
    if lost.between is None:
        assert rules.pace.kind == "event", "a watermark after each event is no estimate"
        return
    assert lost.between[0] <= lost.events <= lost.between[1] <= most.events
    never = slow.below(events, [None if rules.begins_ms else 0] * len(events), equal=rules.equal_is_late)
    assert operator.kind != "event" or lost.between[0] == never, "of a watermark that never moves"
    often = counted(events, ends_of(rules)[1], queues, keys=keys)
    assert (often.events, often.between) == (lost.between[1], None)


@any_declared
def test_the_rules_alone_tell_what_another_delay_loses_and_a_longer_one_loses_no_more(
    events: list[slow.Event], declared: Rules, operator: Operator, queues: int, chance: Random
) -> None:
    keys, table = [chance.randrange(3) for _ in events], np.array(events, np.int64).reshape(-1, 2)
    rules = replace(declared, operators=(operator,))
    lost = [
        loss(table[:, 0], table[:, 1], replace(rules, delay_us=delay_us), np.array(keys, np.int64), queues).events
        for delay_us in (0, 3, 10, 120)
    ]
    assert lost == sorted(lost, reverse=True)


@pytest.mark.parametrize(
    ("kind", "arguments", "more", "message"),
    [
        (Operator, ("windw",), {}, "Operator, argument 0: found 'windw', allowed: 'never', 'window', 'event', "),
        (Operator, ("window", 10), {}, "slide_us: found 0, allowed: a whole part of the window's length, 10"),
        (Operator, ("window", 10, 20), {}, "slide_us: found 20, allowed: a whole part of the window's length, 10"),
        (Operator, ("window", 0, 1), {}, "length_us: found 0, allowed for a window: from 1 on"),
        (Operator, ("session",), {}, "length_us: found 0, allowed for a session: from 1 on"),
        (Operator, ("event",), {"lag_us": -1}, "lag_us: found -1, allowed: greater than or equal to 0"),
        (Operator, ("event",), {"offset_us": 0.5}, "offset_us: found 0.5, allowed: a valid integer"),
        (Pace, ("batch",), {}, "Pace, argument 0: found 'batch', allowed: 'event', 'interval' or 'micro-batch'"),
        (Pace, ("interval",), {}, "interval_us: found 0, allowed for the kind interval: from 1 on"),
        (Pace, ("event", 5), {}, "interval_us: found 5, allowed for the kind event: 0"),
        (Pace, (), {"behind": 3}, "behind: found 3, allowed: 1 or 2"),
        (Pace, (), {"step_us": 0}, "step_us: found 0, allowed: greater than or equal to 1"),
        (Rules, (("window",),), {}, "Rules, argument 0.0: found 'window', allowed: a dictionary or an instance of "),
        (Rules, ((),), {"pace": "fast"}, "pace: found 'fast', allowed: a dictionary or an instance of Pace"),
        (Rules, ((),), {"delay_us": 1.0}, "delay_us: found 1.0, allowed: a valid integer"),
        (Rules, ((),), {"begins_ms": None}, "begins_ms: found None, allowed: a valid integer"),
        (Rules, ((),), {"joins_first": "no"}, "joins_first: found 'no', allowed: a valid boolean"),
        (Rules, ((),), {"clock": "mine"}, "clock: found 'mine', allowed: 'all queues', 'least queue', "),
        (Rules, ((),), {"late_counted": "mine"}, "late_counted: found 'mine', allowed: 'rows', 'groups', "),
    ],
)
def test_rules_that_contradict_themselves_are_refused_in_one_line(
    kind: Callable[..., object], arguments: tuple[object, ...], more: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError) as refusal:
        kind(*arguments, **more)
    assert first_mistake(refusal.value).startswith(message)


def test_the_first_operator_that_may_lose_an_event_decides() -> None:
    event, arrival = np.array([9, 5, 8]), np.arange(3)
    lost = [
        loss(event, arrival, Rules(operators, 2))
        for operators in ((Operator("never"), Operator("event")), (Operator("never"),) * 2)
    ]
    assert [(one.events, one.rule) for one in lost] == [(1, "event"), (0, "never")]


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
    Pace(): "order by i rows between unbounded preceding and 1 preceding",
    Pace("interval", 200_000): "order by arrival // 200000 range between unbounded preceding and 1 preceding",
    Pace("micro-batch", 10 * S, 2): "order by arrival // 10000000 range between unbounded preceding and 2 preceding",
}
#: when SQL calls an event lost
LOST = {
    Operator("window", 60 * S, 60 * S): "event // 60000000 * 60000000 + 60000000 <= watermark",
    Operator("window", 600 * S, 60 * S): "event // 60000000 * 60000000 + 600000000 <= watermark",
    Operator("event"): "event < watermark",
    Operator("never"): "false",
}


@pytest.mark.parametrize("operator", LOST, ids=lambda one: f"{one.kind}-{one.slide_us // S}-of-{one.length_us // S}")
@pytest.mark.parametrize("pace", FRAMES, ids=lambda pace: pace.kind)
def test_duckdb_counts_the_same(pace: Pace, operator: Operator) -> None:
    event, arrival = late_stream(20_000)
    lost = loss(event, arrival, Rules((operator,), 10 * S, pace=pace))
    base = duckdb.connect()
    base.register("stream", {"i": np.arange(len(event)), "event": event, "arrival": arrival})
    sql = f"select max(event) over ({FRAMES[pace]}) - 10000000 as watermark, event from stream"
    assert base.execute(f"select count(*) filter (where {LOST[operator]}) from ({sql})").fetchone() == (lost.events,)
    assert (lost.events > 300) == (operator.kind != "never" and operator.slide_us in (0, operator.length_us))


def test_the_count_is_of_the_events_that_a_query_reads_and_the_watermark_follows_all() -> None:
    event, arrival = np.array([5, 31, 6, 7, 12, 40, 21]), np.arange(7)
    count = LossCount(Rules((Operator("window", 20, 10),)))
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
    between = replace(lost, between=(0, 2950)).sentence
    assert between == f"{lost.sentence}; at any other pace, between 0 and 2,950"
    some = Loss(1, 8, "window", Pace().cadence, 3, 2)
    assert some.count == "1 of 8 events (12.5 %), and 2 more in some of their windows"
    assert Loss(0, 8, "never", Pace().cadence).sentence == "no event may be dropped at any speed, however late it is"
