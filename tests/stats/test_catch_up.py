"""Reading a catch-up from looks at the queues: made series, and arithmetic by hand."""

from __future__ import annotations

import pytest

from streamgauge.stats.catch_up import CaughtUp, Look, Needed, caught_up, live_since, needed

REACHES = Needed("not known", reason="the interval of what it takes reaches the rate at which events come")
FEW = Needed("not known", reason="not all of two or more repeats tell what it takes meanwhile")


def falling(every_s: float, drain: float, live: float, behind_s: float, until_s: float) -> list[Look]:
    """Looks at a system that takes `drain` events/s while `live` come, and then all that comes."""
    looks: list[Look] = []
    steps = round(until_s / every_s)
    for step in range(steps + 1):
        at = step * every_s
        taken = min(drain * at, live * (behind_s + at))
        looks.append((at, behind_s + at - taken / live, round(taken)))
    return looks


def test_it_is_live_once_its_age_is_below_the_bound_for_good() -> None:
    looks = falling(0.5, 300, 100, 60, 60)
    # the backlog of 6000 shrinks by 200 a second; at 28.5 s it is 3 s old
    assert caught_up(looks, looks, 3.0, 0.0) == CaughtUp(28.5, 300.0)
    again = [*looks, (61.0, 4.0, 12_000), (62.0, 1.0, 12_300)]
    assert caught_up(again, again, 3.0, 0.0).live_s == 62.0


def test_a_batch_that_holds_the_whole_backlog_is_not_live_before_it_has_ended() -> None:
    hand_overs: list[Look] = [(0.1, 60.1, 0), (20.1, 20.0, 6000), (26.8, 6.7, 8000), (29.0, 2.2, 8670)]
    clock: list[Look] = [(0.2, 0.1, 6000), (2.0, 1.9, 6000), (28.9, 2.1, 8670)]
    assert caught_up(hand_overs[:1], clock[:2], 3.0, 0.0).live_s is None
    assert caught_up(hand_overs, clock, 3.0, 0.0) == CaughtUp(29.0, 8670 / 28.9)


def test_a_batch_that_never_ended_is_not_live_though_the_driver_looks_once_more_at_the_end() -> None:
    hand_overs: list[Look] = [(0.1, 60.1, 0), (20.1, 20.0, 6000)]
    clock: list[Look] = [(0.2, 60.2, 0), (20.2, 0.1, 8000), (22.0, 1.9, 8000)]
    at_the_end: Look = (22.1, 2.0, 6000)
    assert caught_up([*hand_overs, at_the_end], clock, 3.0, 0.0) == CaughtUp(None, 6000 / 22.0)


def test_what_is_never_live_has_a_speed() -> None:
    looks = falling(1.0, 90, 100, 60, 30)
    assert caught_up(looks, looks, 3.0, 0.0) == CaughtUp(None, 90.0)
    assert caught_up([], [], 3.0, 0.0) == CaughtUp(None, None)
    assert caught_up(looks[:1], looks[:1], 3.0, 0.0) == CaughtUp(None, None)


@pytest.mark.parametrize(("until_s", "stays"), [(28.0, False), (33.0, False), (33.5, True), (60.0, True)])
def test_it_stays_live_for_so_long(until_s: float, stays: bool) -> None:
    looks = falling(0.5, 300, 100, 60, until_s)
    assert (live_since(looks, looks, 3.0, 5.0) == 28.5) == stays


@pytest.mark.parametrize(
    ("taken", "interval", "wanted"),
    [
        (600.0, (500.0, 700.0), Needed("claimed", 720.0, 600.0, 900.0)),
        (600.0, (100.0, 700.0), REACHES),
        (90.0, (80.0, 100.0), Needed("never", reason="it takes no more than comes")),
        (90.0, (80.0, 101.0), REACHES),
        (600.0, None, FEW),
        (None, None, FEW),
    ],
)  # fmt: skip
def test_an_hour_of_standstill_is_claimed_only_where_the_interval_is_above_the_rate(
    taken: float | None, interval: tuple[float, float] | None, wanted: Needed
) -> None:
    assert needed(3600, 100, taken, interval) == wanted
