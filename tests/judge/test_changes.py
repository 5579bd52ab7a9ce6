"""Change points against injected truth; the full table of rates is printed by benchmarks/changes.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.changes import Case
from streamgauge.base.errors import UserError
from streamgauge.stats.ab import compare
from streamgauge.stats.changes import find
from streamgauge.stats.outcomes import Change
from streamgauge.stats.suspects import confirm, higher_is_better, suspects

DAYS = np.arange(90.0)


def series(seed: int, noise: float = 0.03, n: int = 90, steps: dict[int, float] | None = None) -> np.ndarray:
    """Lognormal noise around 100; from each place on, the level is multiplied."""
    values = 100 * np.exp(np.random.default_rng(seed).normal(0, noise, n))
    for place, factor in (steps or {}).items():
        values[place:] *= factor
    return values


def places(values: np.ndarray, **settings: Any) -> list[int]:
    return [c.index for c in find(values.tolist(), DAYS[: values.size].tolist(), **settings).changes]


def test_finds_a_step_with_its_place_magnitude_and_confidence() -> None:
    found = find(series(1, 0.01, steps={60: 1.1}).tolist())
    (change,) = found.changes
    assert change.index == 60
    assert change.interval is not None
    assert change.interval[0] < 0.1 < change.interval[1]
    assert change.magnitude == pytest.approx(0.1, abs=0.01)
    assert (change.before, change.after) == pytest.approx((100, 110), rel=0.01)
    assert change.confidence > 0.999
    assert found.noise == pytest.approx(0.01, rel=0.3)


def test_noiseless_steps_are_exact() -> None:
    values = [100.0] * 10 + [110.0] * 10 + [100.0] * 6
    assert [(c.index, round(c.magnitude, 9), c.confidence) for c in find(values).changes] == [
        (10, 0.1, 1.0), (20, round(1 / 1.1 - 1, 9), 1.0),
    ]  # fmt: skip
    assert find([100.0] * 50).changes == []


@pytest.mark.parametrize("length", [6, 10, 20])
def test_a_bump_does_not_hide_between_equal_levels(length: int) -> None:
    assert places(series(2, 0.02, steps={40: 1.15, 40 + length: 1 / 1.15})) == [40, 40 + length]


def test_single_nights_are_no_change() -> None:
    values = series(3, 0.01)
    values[[20, 21, 50, 70, 71, 72]] *= 1.5
    assert places(values) == []


def test_a_drift_is_no_step() -> None:
    assert places(series(4, 0.01) * np.linspace(1, 1.3, 90)) == []


def test_a_weekly_pattern_is_taken_out_and_a_step_within_it_is_found() -> None:
    weekend = np.where(DAYS % 7 >= 5, 1.08, 1.0)
    found = find((series(5, 0.01) * weekend).tolist(), DAYS.tolist())
    assert (found.changes, found.weekly_pattern) == ([], True)
    assert found.noise == pytest.approx(0.01, rel=0.3)
    assert places(series(5, 0.01, steps={55: 1.05}) * weekend) == [55]


def test_gaps_are_no_harm() -> None:
    kept = np.sort(np.random.default_rng(6).permutation(90)[:60])
    values = series(6, 0.02, steps={45: 1.12})[kept]
    (change,) = find(values.tolist(), DAYS[kept].tolist()).changes
    assert change.index == np.searchsorted(kept, 45)


def test_small_steps_below_what_matters_are_left_out() -> None:
    values = series(7, 0.001, steps={45: 1.01})
    assert places(values) == []
    assert places(values, magnitude=0.005) == [45]


def test_many_series_raise_the_bar() -> None:
    values = series(8, 0.03, steps={85: 1.1})
    assert find(values.tolist()).changes != []
    assert find(values.tolist(), series=10**6).changes == []


def test_a_ten_percent_step_is_found_within_five_nights_and_equals_stay_quiet() -> None:
    found = sum(any(abs(p - 60) <= 3 for p in places(series(s, steps={60: 1.1})[:65])) for s in range(200))
    alarms = sum(bool(places(series(s)[:n])) for s in range(1000, 1020) for n in range(61, 91))
    assert found >= 186
    assert alarms <= 2


def test_too_few_values_say_how_many_are_needed() -> None:
    found = find([100.0] * 7)
    assert (found.changes, found.n) == ([], 7)
    assert found.reason == "7 values: at least 8 are needed to detect a change"
    assert find([]).n == 0


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan")])
def test_a_value_without_a_logarithm_is_refused_with_its_place(bad: float) -> None:
    with pytest.raises(UserError, match="series: value 3: found"):
        find([1.0, 1.0, bad, *[1.0] * 9])


def change(index: int = 60, magnitude: float = 0.1) -> Change:
    return Change(index, magnitude, None, 0.999, 100, 100 * (1 + magnitude))


def test_a_place_that_moves_a_little_is_the_same_suspect() -> None:
    def left(places: list[int], *judged: int, outcome: str = "refuted") -> list[int]:
        known = [(place, outcome, f"n{number}") for number, place in enumerate(judged)]
        return [one.index for one in suspects([change(place) for place in places], known)]

    assert left([60, 70], 58) == [70]
    assert left([60, 64], 60) == [64], "a judged place is one change only"
    assert left([60, 64], 61, 65) == []
    assert left([64], 58) == [64]
    assert left([60], 60, outcome="self") == [60]


def test_a_suspect_is_left_alone_after_three_nights_that_left_it_open() -> None:
    def left(*judged: tuple[int, str]) -> list[Change]:
        return suspects([change(60)], [(place, "open", run) for place, run in judged])

    assert left((60, "a"), (60, "a"), (60, "a")) == [change(60)], "a night that is judged again is one night"
    assert left((60, "a"), (61, "b")) == [change(60)]
    assert left((60, "a"), (61, "b"), (59, "c")) == []


def test_a_change_knows_where_the_level_before_it_begins() -> None:
    noise = [1 + 0.01 * (number * 7 % 5 - 2) for number in range(60)]
    values = [n * level for n, level in zip(noise, [100] * 30 + [80] * 10 + [100] * 20, strict=True)]
    assert [(one.begin, one.index) for one in find(values).changes] == [(0, 30), (30, 40)]


@pytest.mark.parametrize(
    ("true", "magnitude", "outcome"),
    [(1.1, 0.1, "regression"), (0.9, -0.1, "improvement"), (1.0, 0.1, "refuted"), (0.9, 0.1, "refuted")],
)
def test_only_what_a_rerun_finds_again_is_called(true: float, magnitude: float, outcome: str) -> None:
    random = np.random.default_rng(9)

    def rerun(n: int) -> tuple[list[float], list[float]]:
        return random.normal(100, 1, n).tolist(), (true * random.normal(100, 1, n)).tolist()

    assert confirm(change(magnitude=magnitude), rerun).outcome == outcome


def test_a_rerun_too_noisy_to_tell_is_repeated_once_and_then_left_open() -> None:
    random, asked = np.random.default_rng(10), []

    def rerun(n: int) -> tuple[list[float], list[float]]:
        asked.append(n)
        return random.lognormal(0, 0.5, n).tolist(), random.lognormal(0.03, 0.5, n).tolist()

    found = confirm(change(), rerun)
    assert (found.outcome, asked, found.comparison.n_baseline) == ("open", [8, 16], 24)
    assert found.comparison == compare_again(found.comparison.n_baseline)


def compare_again(n: int) -> object:
    random = np.random.default_rng(10)
    sides: tuple[list[float], list[float]] = ([], [])
    for repetitions in (8, n - 8):
        sides[0].extend(random.lognormal(0, 0.5, repetitions).tolist())
        sides[1].extend(random.lognormal(0.03, 0.5, repetitions).tolist())
    return compare(*sides)


@pytest.mark.parametrize(
    ("metric", "unit", "higher"),
    [
        ("sustainable_rate_events_per_s", "events/s", True), ("processing_latency_ms_p99", "ms", False),
        ("scaling_efficiency_at_0.5", "ratio", True), ("scaling_relative_rate_at_checkpoint_ms_500", "ratio", True),
        ("scaling_contention", "ratio", False),
    ],
)  # fmt: skip
def test_which_way_a_figure_is_better(metric: str, unit: str, higher: bool) -> None:
    assert higher_is_better(metric, unit) is higher


@pytest.mark.parametrize(("behind", "shift"), [(-3, 0.1), (0, 0.1), (1, 0.0)])
def test_a_simulated_rerun_differs_only_where_the_night_before_the_place_had_the_old_software(
    behind: int, shift: float
) -> None:
    """A suspected place that lies behind the change has the changed software on both sides, as in a night."""
    case = Case("plain", 0.0, 0.1, seed=1)
    old, new = case.rerun(Change(case.at + behind, 0.1, None, 0.9, 100.0, 110.0))(2)
    assert np.divide(new, old) - 1 == pytest.approx([shift] * 2)
