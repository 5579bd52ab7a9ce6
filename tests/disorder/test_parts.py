"""Disorder by part against brute force, however the stream is cut into blocks and shares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.streams.disorder.parts import Block, Figures, Left, Name, Silence, left, measure, without

GRID = [0, 2, 5, 20]
IDLE = 3
Events = list[tuple[Name, int]]
EVENTS = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(-5, 40)), min_size=1, max_size=40)
CUTS = st.lists(st.integers(1, 39), max_size=5)


def shares_of(events: Events, cuts: Sequence[int]) -> list[list[Block]]:
    """The events in shares that end at these places, each in blocks of at most three events."""
    ends = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    return [[block(events[at : min(at + 3, high)]) for at in range(low, high, 3)] for low, high in pairwise(ends)]


def block(events: Events) -> Block:
    names = list(dict.fromkeys(name for name, _ in events))
    codes = np.array([names.index(name) for name, _ in events], np.int64)
    return Block(names, codes, np.array([at for _, at in events], np.int64))


def in_shares(shares: list[list[Block]]) -> tuple[dict[Name, Figures], list[Left]]:
    """The figures of all shares, and what the stream left before each of them and at its end."""
    before, figures = [Left()], dict[Name, Figures]()
    for share in shares:
        for name, more in measure(share, before[-1], GRID, IDLE).items():
            figures[name] = figures.get(name, Figures()).and_then(more)
        before.append(before[-1].and_then(left(share, before[-1].largest)))
    return figures, before


@given(EVENTS, CUTS)
def test_each_part_is_measured_alone_and_within_the_stream(events: Events, cuts: list[int]) -> None:
    figures, before = in_shares(shares_of(events, cuts))
    assert set(figures) == {name for name, _ in events}
    for name, of_part in figures.items():
        own = [at for one, at in events if one == name]
        delays = [max(own[: k + 1]) - at for k, at in enumerate(own) if max(own[: k + 1]) > at]
        largest = [max(at for _, at in events[: k + 1]) for k in range(len(events))]
        places = [k for k, (one, _) in enumerate(events) if one == name]
        behind = [largest[k] - max(own[: n + 1]) for n, k in enumerate(places)]
        idle = [largest[k - 1] - largest[j] for j, k in pairwise(places)]
        assert (of_part.events, of_part.low, of_part.high) == (len(own), min(own), max(own))
        assert (of_part.delays.count, of_part.delays.total) == (len(delays), sum(delays))
        assert (of_part.delays.largest, of_part.delays.smallest) == (max(delays, default=0), min(delays, default=0))
        assert sum(of_part.delays.buckets.values()) == len(delays)
        assert of_part.late is not None
        assert of_part.late.tolist() == [sum(delay > step for delay in delays) for step in GRID]
        assert (of_part.behind.count, of_part.behind.total, of_part.behind.largest) == (
            len(behind), sum(behind), max(behind),
        )  # fmt: skip
        assert (of_part.longest_idle, of_part.idle_spells) == (max(idle, default=0), sum(gap > IDLE for gap in idle))
        absences = [k - j - 1 for j, k in pairwise(places)]
        assert of_part.returns == sum(some > 0 for some in absences)
        assert of_part.longest_absence == max(absences, default=0)
        end = Silence(len(events) - places[-1] - 1, largest[places[-1]], largest[-1] - largest[places[-1]])
        assert before[-1].silence(name) == end
        late = [top > at for (one, at), top in zip(events, largest, strict=True) if one == name]
        sizes = [len(list(some)) for is_late, some in groupby(late) if is_late]
        bursts = of_part.bursts.all()
        assert (bursts.count, bursts.total, bursts.largest) == (len(sizes), sum(late), max(sizes, default=0))
        assert before[-1].parts[name].at == largest[places[-1]]
    holders = [
        next(one for one, at in events if at == top)
        for top in (max(a for _, a in events[: k + 1]) for k in range(len(events)))
    ]
    for name, of_part in figures.items():
        overtaken = [
            k
            for k, (one, at) in enumerate(events)
            if holders[k] == name and one != name and at < max(a for _, a in events[: k + 1])
        ]
        assert of_part.overtaken == len(overtaken), (name, holders)


@given(EVENTS, CUTS, st.sets(st.sampled_from(["a", "b", None]), min_size=1))
def test_the_stream_without_some_parts(events: Events, cuts: list[int], names: set[Name]) -> None:
    shares, left_out = shares_of(events, cuts), list(names)
    _, before = in_shares(shares)
    measured = [
        without(share, so_far.largest_without(left_out), left_out)
        for share, so_far in zip(shares, before, strict=False)
    ]
    whole = measured[0]
    for more in measured[1:]:
        whole = whole.and_then(more)
    late, ahead = list[int](), {name: list[int]() for name in left_out}
    for k, (name, at) in enumerate(events):
        others = [other for one, other in events[:k] if one not in names]
        if name not in names:
            late += [max(others) - at] if others and max(others) > at else []
        elif others:
            ahead[name].append(at - max(others))
    assert (whole.delays.count, whole.delays.total) == (len(late), sum(late))
    assert [(one.count, one.total) for one in whole.ahead] == [(len(ahead[n]), sum(ahead[n])) for n in left_out]


def test_a_part_that_ends_early_is_idle_from_then_on() -> None:
    figures = Figures(events=2, longest_idle=1)
    for ticks, longest, spells in ((7, 7, 1), (3, 3, 0), (0, 1, 0)):
        end = Silence(4, 6, ticks)
        assert figures.to_end(end, IDLE) == Figures(events=2, longest_idle=longest, idle_spells=spells, end=end)
