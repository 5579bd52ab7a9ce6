"""Losses of each delay, by fixed windows and event by event, against a count event by event."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.catalog.artifacts import Artifact
from streamgauge.records.advice import Advice, Question, Trade
from streamgauge.streams.stages import advise
from streamgauge.streams.stages.workers import Forked
from tests.manifests import of_events

MS = 10**6
Event = tuple[int, str, int]


def measured(events: list[Event], question: Question, asked: list[int], *, rows: int = 3) -> Advice:
    """The advice on events (time, key, value), in row groups of so many."""
    with TemporaryDirectory() as folder:
        times, keys, values = zip(*events, strict=True)
        table = pa.table({
            "event_time": pa.array(times, pa.int64()), "key": keys, "value": pa.array(values, pa.int64()),
            "arrival_time": pa.array([5 * MS * n if n % 4 else None for n in range(len(times))], pa.int64()),
        })  # fmt: skip
        pq.write_table(table, Path(folder) / "part.parquet", row_group_size=rows)
        manifest = of_events(files=("part.parquet",), events=len(times), arrival=True)
        artifact = Artifact("events", "key", Path(folder), manifest)
        return advise.measure(Forked(1), artifact, question, asked)


@dataclass
class Window:
    """A window by key, as an engine with a watermark after each event sees it."""

    kept: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    answered: int | None = None
    arrived: int | None = None


def simulated(events: list[Event], question: Question, delay: int) -> tuple[int, int, int, int, dict[Any, Window]]:
    """Lost events, lost in part, revisions, most open windows; and the windows by end and key."""
    windows: dict[tuple[int, str], Window] = defaultdict(Window)
    reached: int | None = None
    lost = in_part = revised = most = 0
    for number, (time, key, value) in enumerate(events):
        watermark = None if reached is None else reached - delay
        end = (time // question.slide + 1) * question.slide
        ends = range(end, end + question.length, question.slide)
        missing = 0
        for end in ends:
            late = watermark is not None and end <= watermark
            if watermark is not None and end + question.allowed_lateness <= watermark:
                windows[end, key].lost.append(value)
                missing += 1
            else:
                windows[end, key].kept.append(value)
                revised += late
        lost, in_part = lost + (missing == len(ends)), in_part + bool(missing)
        reached = time if reached is None else max(reached, time)
        # open: it has an event, and still takes more
        still = [w for (end, _), w in windows.items()
                 if w.kept and end + question.allowed_lateness > reached - delay]  # fmt: skip
        most = max(most, len(still))
        for (end, _), window in windows.items():
            if window.kept and window.answered is None and end <= reached - delay:
                window.answered, window.arrived = reached - end, 5 * MS * number - end if number % 4 else None
    return lost, in_part, revised, most, windows


def quantile(values: list[int], share: float) -> int | None:
    return sorted(values)[-(-len(values) * int(share * 100) // 100) - 1] if values else None


def check(trade: Trade, events: list[Event], question: Question) -> None:
    lost, in_part, revised, most, windows = simulated(events, question, trade.delay)
    assert (trade.lost, trade.lost_in_part) == (lost, in_part)
    assert trade.windows == len(windows)
    wrong = [window for window in windows.values() if window.lost]
    assert trade.windows_wrong == len(wrong)
    assert trade.open_windows == most
    assert trade.revised == (revised if question.allowed_lateness else None)
    if wrong:
        shares = [len(w.lost) / (len(w.lost) + len(w.kept)) for w in wrong]
        sums = [abs(sum(w.lost)) / sum(w.lost + w.kept) if sum(w.lost) else 0.0 for w in wrong]
        for given_, expected in ((trade.count_error, shares), (trade.value_error, sums)):
            assert given_ is not None
            assert (given_.median, given_.worst) == (median(expected), max(expected))
    else:
        assert trade.count_error is None
        assert trade.value_error is None
    if question.allowed_lateness:
        return  # a first event within it answers at once, which the waits leave out
    for wait, waited in (
        (trade.wait, [w.answered for w in windows.values() if w.answered is not None]),
        (trade.wait_arrival, [w.arrived for w in windows.values() if w.arrived is not None]),
    ):
        assert wait is not None
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            right = quantile(waited, share)
            measured_ = getattr(wait, name)
            assert (measured_ is None) == (right is None)
            if right is not None:
                assert abs(measured_ - right) <= abs(right) * 2**-8 + 1


events_of = st.lists(
    st.tuples(st.integers(-40, 60).map(lambda n: n * MS // 2), st.sampled_from("ab"), st.integers(1, 9)),
    min_size=1, max_size=25,
)  # fmt: skip
delays_of = st.lists(st.integers(0, 60).map(lambda n: n * MS // 4), max_size=3)


@given(events_of, st.integers(1, 8), st.sampled_from([1, 2, 3]), delays_of, st.booleans(), st.sampled_from([0, 0, 7]))
@settings(max_examples=150, deadline=None)
def test_windows_are_those_of_an_engine(
    events: list[Event], slide: int, panes: int, asked: list[int], keyed: bool, lateness: int
) -> None:
    kind = "tumbling" if panes == 1 else "sliding"
    question = Question(answers=kind, length=slide * panes * MS, slide=slide * MS, key="key" if keyed else None,
                        value="value", allowed_lateness=lateness * MS // 2)  # fmt: skip
    advice = measured(events, question, asked)
    plain = events if keyed else [(time, "", value) for time, _, value in events]
    assert {*asked} <= {trade.delay for trade in advice.curve}
    for trade in advice.curve:
        check(trade, plain, question)
    assert advice.curve[0].delay == 0
    assert min(trade.lost for trade in advice.curve) == 0


@given(events_of, delays_of)
@settings(max_examples=60, deadline=None)
def test_events_by_themselves_are_late_below_the_watermark(events: list[Event], asked: list[int]) -> None:
    for trade in measured(events, Question(answers="event"), asked).curve:
        reached, lost = events[0][0], 0
        for time, _, _ in events:
            lost += time < reached - trade.delay
            reached = max(reached, time)
        assert (trade.lost, trade.windows, trade.wait) == (lost, None, None)


def test_the_curve_shows_where_the_loss_changes() -> None:
    times = [0, 100, 20, 100, 95, 200, 10]
    curve = measured([(ms * MS, "a", 1) for ms in times], Question(answers="event"), []).curve
    assert [(trade.delay // MS, trade.lost) for trade in curve] == [(0, 3), (5, 2), (100, 1), (190, 0)]
    assert all(one.lost >= two.lost for one, two in pairwise(curve))
