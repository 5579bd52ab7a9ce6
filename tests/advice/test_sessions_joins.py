"""Sessions and joins of an advice equal a brute force that takes one event after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.records.advice import Trade
from streamgauge.streams.advice import joins, sessions
from streamgauge.streams.lateness.sessions import left_out

EVENTS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2), st.booleans()), min_size=1, max_size=25)


@given(EVENTS, st.integers(1, 8), st.integers(0, 20))
def test_a_join_lacks_the_pairs_of_late_events(events: list[tuple[int, int, bool]], length: int, delay: int) -> None:
    state: list[tuple[int, int, bool]] = []
    emitted = 0
    largest = events[0][0]
    for time, key, left in events:
        if time >= largest - delay:
            state = [one for one in state if one[0] + length >= largest - delay]  # as an engine forgets
            emitted += sum(k == key and half != left and abs(t - time) <= length for t, k, half in state)
            state.append((time, key, left))
        largest = max(largest, time)
    every = sum(a[1] == b[1] and a[2] and not b[2] and abs(a[0] - b[0]) <= length for a in events for b in events)
    times, keys, halves = (np.array(column) for column in zip(*events, strict=True))
    (trade,) = joins.with_pairs([Trade(delay=delay, lost=0, lost_in_part=0)], times, keys, halves, length)
    assert (trade.windows, trade.windows_wrong) == (every, every - emitted)


@given(EVENTS, st.integers(1, 8), st.integers(0, 20), st.booleans())
def test_sessions_are_wrong_unless_emitted_whole(
    events: list[tuple[int, int, bool]], gap: int, delay: int, joins_first: bool
) -> None:
    def chains(members: set[int]) -> set[frozenset[int]]:
        found: list[set[int]] = []
        for n in members:
            near = [c for c in found if any(events[n][1] == events[m][1] and abs(events[n][0] - events[m][0]) <= gap
                                            for m in c)]  # fmt: skip
            found = [c for c in found if c not in near] + [{n}.union(*near)]
        return {frozenset(c) for c in found}

    open_now, done, lost = set[int](), set[frozenset[int]](), 0
    largest = events[0][0]
    for n, (time, _, _) in enumerate(events):
        watermark = largest - delay
        ended = {c for c in chains(open_now) if max(events[m][0] for m in c) + gap <= watermark}
        done |= ended
        open_now -= {m for c in ended for m in c}
        own = next(c for c in chains(open_now | {n}) if n in c)
        last = max(events[m][0] for m in own) if joins_first else time
        if last + gap <= watermark:
            lost += 1
        else:
            open_now.add(n)
        largest = max(largest, time)
    done |= chains(open_now)
    true = chains(set(range(len(events))))
    times, keys, _ = (np.array(column) for column in zip(*events, strict=True))
    (trade,) = sessions.trades(times, keys, gap, [delay], times + 1, joins_first=joins_first)
    assert (trade.lost, trade.windows, trade.windows_wrong) == (lost, len(true), len(true - done))
    errors = [1 - max([len(d) for d in done if d <= c], default=0) / len(c) for c in true - done]
    assert (trade.count_error.worst if trade.count_error else None) == (max(errors) if errors else None)
    if joins_first:
        numbers = sessions.sessions(times, keys, gap)
        wrong = np.flatnonzero(sessions.wrong(times, keys, gap, delay))
        assert {frozenset(np.flatnonzero(numbers == n).tolist()) for n in wrong} == true - done
        ends = sessions.ends(times, keys, gap)
        assert sorted(ends.tolist()) == sorted(max(events[m][0] for m in c) + gap for c in true)


@given(EVENTS, st.integers(1, 8), st.integers(0, 20))
def test_sessions_lose_what_the_count_of_a_run_loses(events: list[tuple[int, int, bool]], gap: int, delay: int) -> None:
    times, keys, _ = (np.array(column, np.int64) for column in zip(*events, strict=True))
    (trade,) = sessions.trades(times, keys, gap, [delay])
    before = np.r_[times[0], np.maximum.accumulate(times)[:-1]]
    lost = sessions.lost(times, keys, gap, delay)
    assert trade.lost == lost.sum()
    assert lost.tolist() == left_out(keys, times, before - delay, gap).tolist()
