from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from itertools import product
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.config import Search, parse
from streamgauge.errors import UserError
from streamgauge.search import Done, Rate, next_step
from streamgauge.trial import Outcome, Trial, Verdict

Outcomes = Outcome | Literal["invalid"]
#: a system as the search sees it: the step and how often its rate was tried before -> outcome, carried
Run = Callable[[Rate, int], tuple[Outcomes, float | None]]


def search(plan: Search, run: Run) -> tuple[Done, list[Trial]]:
    trials: list[Trial] = []
    while isinstance(step := next_step(plan, trials), Rate):
        before = sum(t.rate_events_per_s == step.rate_events_per_s for t in trials)
        outcome, carried = run(step, before)
        trials.append(tried(step, outcome, carried))
        assert len(trials) <= plan.max_trials
    return step, trials


def tried(step: Rate, outcome: Outcomes, carried: float | None = None) -> Trial:
    if outcome == "invalid":
        return step.tried(Verdict("inconclusive", "the driver slipped"), carried, valid=False)
    return step.tried(Verdict(outcome, "as told"), carried)


def threshold(capacity: float, *, shows: float | None = 1.0) -> Run:
    """Sustains rates up to the capacity; overloaded, it carries `shows` times that."""

    def run(step: Rate, _: int) -> tuple[Outcomes, float | None]:
        if step.rate_events_per_s <= capacity:
            return "sustainable", step.rate_events_per_s
        return "unsustainable", None if shows is None else capacity * shows

    return run


def _reloaded(trial: Trial) -> Trial:
    record = json.loads(json.dumps(asdict(trial)))
    return Trial(**{**record, "verdict": Verdict(**record["verdict"])})


GRIDS = [tuple(100.0 * (i + 1) for i in range(n)) for n in range(1, 9)]
CASES = [(grid, sustained) for grid in GRIDS for sustained in range(len(grid) + 1)]


@pytest.mark.parametrize(("grid", "sustained"), CASES)
@pytest.mark.parametrize("confirmations", [0, 1, 2])
def test_every_threshold_of_every_grid(grid: tuple[float, ...], sustained: int, confirmations: int) -> None:
    plan = Search(rates=grid, confirmations=confirmations, max_trials=20)
    limit = grid[sustained - 1] if sustained else 0.0
    done, trials = search(plan, threshold(limit))
    assert done.rate_events_per_s == limit
    assert done.interval == (limit, grid[sustained] if sustained < len(grid) else None)
    whole = "all_sustained" if sustained == len(grid) else "found"
    assert done.outcome == (whole if sustained else "none_sustained")
    confirming = confirmations if sustained else 0
    assert len(trials) <= math.ceil(math.log2(len(grid) + 1)) + confirming
    assert {t.rate_events_per_s for t in trials} <= set(grid)


@pytest.mark.parametrize(("grid", "sustained"), CASES)
@pytest.mark.parametrize("first_look", ["inconclusive", "invalid"])
def test_a_first_look_without_an_answer_is_repeated_and_changes_nothing(
    grid: tuple[float, ...], sustained: int, first_look: Outcomes
) -> None:
    limit = grid[sustained - 1] if sustained else 0.0
    truth = threshold(limit)
    for unclear in product([False, True], repeat=len(grid)):
        first = dict(zip(grid, unclear, strict=True))

        def run(step: Rate, before: int, first: dict[float, bool] = first) -> tuple[Outcomes, float | None]:
            return (first_look, None) if before == 0 and first[step.rate_events_per_s] else truth(step, before)

        done, trials = search(Search(rates=grid, confirmations=0, max_trials=20), run)
        assert done.rate_events_per_s == limit
        repeats = sum(t.verdict.outcome == "inconclusive" for t in trials)
        assert len(trials) - repeats <= math.ceil(math.log2(len(grid) + 1))


@pytest.mark.parametrize(("grid", "sustained"), CASES)
def test_a_rate_that_stays_inconclusive_counts_as_not_sustained(grid: tuple[float, ...], sustained: int) -> None:
    for position, rate in enumerate(grid):
        truth = threshold(grid[sustained - 1] if sustained else 0.0)

        def run(step: Rate, before: int, rate: float = rate, truth: Run = truth) -> tuple[Outcomes, float | None]:
            return ("inconclusive", None) if step.rate_events_per_s == rate else truth(step, before)

        done, trials = search(Search(rates=grid, confirmations=0, max_trials=20), run)
        tried = [t.rate_events_per_s for t in trials]
        assert tried.count(rate) in (0, 2)
        # once asked, it bounds the answer; unasked, the binary search never came near it
        expected = min(sustained, position) if rate in tried else sustained
        assert done.rate_events_per_s == (grid[expected - 1] if expected else 0.0)


@pytest.mark.parametrize(("grid", "sustained"), CASES)
def test_a_rate_that_stays_invalid_is_evidence_of_nothing(grid: tuple[float, ...], sustained: int) -> None:
    for position, rate in enumerate(grid):
        truth = threshold(grid[sustained - 1] if sustained else 0.0)

        def run(step: Rate, before: int, rate: float = rate, truth: Run = truth) -> tuple[Outcomes, float | None]:
            return ("invalid", None) if step.rate_events_per_s == rate else truth(step, before)

        done, trials = search(Search(rates=grid, confirmations=0, max_trials=20), run)
        asked = [t.rate_events_per_s for t in trials]
        failed = [r for r in asked if r > truth_of(grid, sustained) and r != rate]
        assert asked.count(rate) in (0, 2)
        if rate in asked and position <= sustained:  # all below it is sustained, and it hides the rest
            expected = grid[position - 1] if position else 0.0
            assert (done.rate_events_per_s, done.outcome) == (expected, "inconclusive")
            assert done.interval == (expected, min(failed, default=None))
            assert done.reason == f"nothing is known of {rate:g} events/s: the driver slipped"
        else:  # never asked, or something below it failed
            assert done.rate_events_per_s == truth_of(grid, sustained)
            assert done.interval[1] == (grid[sustained] if sustained < len(grid) else None)
            assert done.outcome in ("found", "none_sustained", "all_sustained")


def truth_of(grid: tuple[float, ...], sustained: int) -> float:
    return grid[sustained - 1] if sustained else 0.0


def test_what_the_driver_cannot_offer_bounds_no_interval() -> None:
    """A system far above the driver: each rate above 40 000 slips."""

    def run(step: Rate, _: int) -> tuple[Outcomes, float | None]:
        return ("invalid" if step.rate_events_per_s > 40_000 else "sustainable"), step.rate_events_per_s

    for start in (None, 500.0):
        done, trials = search(Search(start_rate=start, max_rate=1e6, max_trials=40), run)
        assert 40_000 / 1.04 <= done.rate_events_per_s <= 40_000
        assert (done.interval[1], done.outcome) == (None, "inconclusive")
        lowest = min(t.rate_events_per_s for t in trials if not t.valid)
        assert done.reason == f"nothing is known of {lowest:g} events/s: the driver slipped"
        assert sum(t.rate_events_per_s == done.rate_events_per_s and t.valid for t in trials) == 2  # confirmed


def test_an_invalid_probe_still_shows_where_to_look() -> None:
    def run(step: Rate, before: int) -> tuple[Outcomes, float | None]:
        return ("invalid", 1000.0) if step.purpose == "probe" else threshold(1000)(step, before)

    done, trials = search(Search(max_rate=10_000), run)
    assert [t.rate_events_per_s for t in trials] == [10_000, 925.926, 1080, 1000, 1039.23, 1000]
    assert (done.interval, done.outcome) == ((1000, 1039.23), "found")


def test_a_search_without_a_valid_trial_ends_soon_and_says_why() -> None:
    done, trials = search(Search(max_trials=30), lambda *_: ("invalid", None))
    assert len(trials) == 4
    assert done == Done(0, (0, None), "inconclusive", "all of 4 trials were invalid: the driver slipped")
    short, _ = search(Search(max_trials=3), lambda *_: ("invalid", None))
    assert (short.interval, short.outcome) == ((0, None), "budget_spent")
    assert short.reason.endswith("nothing is known of 2236.07 events/s: the driver slipped")


def test_confirmations_that_are_invalid_confirm_nothing_and_overturn_nothing() -> None:
    def run(step: Rate, before: int) -> tuple[Outcomes, float | None]:
        return ("invalid", None) if before else threshold(1000)(step, before)

    done, trials = search(Search(max_rate=10_000, max_trials=20), run)
    assert [t.purpose for t in trials[-2:]] == ["confirm", "confirm"]
    assert (done.rate_events_per_s, done.interval, done.outcome) == (1000, (1000, 1039.23), "inconclusive")
    assert done.reason == "1000 events/s was sustained once and not confirmed: the driver slipped"


def test_an_invalid_trial_between_two_inconclusive_ones_is_no_third_look() -> None:
    outcomes: list[Outcomes] = ["inconclusive", "invalid", "inconclusive"]
    done, trials = search(Search(rates=(10, 20), confirmations=0), lambda _, before: (outcomes[before], None))
    assert [t.rate_events_per_s for t in trials] == [10, 10, 10]
    assert (done.interval, done.outcome) == ((0, 10), "none_sustained")


def test_the_largest_of_three_rates_alone_failing_is_no_none() -> None:
    """A published tool's binary search answers "none" here."""
    done, trials = search(Search(rates=(1, 2, 3), confirmations=0), threshold(2))
    assert done == Done(2, (2, 3), "found", "3 events/s was not sustained: as told")
    assert [t.rate_events_per_s for t in trials] == [2, 3]


def test_a_contradicted_confirmation_moves_below() -> None:
    def run(step: Rate, before: int) -> tuple[Outcomes, float | None]:
        fails = step.rate_events_per_s > 400 or (step.rate_events_per_s == 400 and before == 1)
        return ("unsustainable" if fails else "sustainable"), None

    done, trials = search(Search(rates=(100, 200, 300, 400, 500)), run)
    assert (done.rate_events_per_s, done.interval, done.outcome) == (300, (300, 400), "found")
    assert [(t.rate_events_per_s, t.purpose) for t in trials] == [
        (300, "bisect"),
        (400, "bisect"),
        (500, "bisect"),
        (400, "confirm"),
        (300, "confirm"),
    ]


def test_the_order_of_a_whole_search() -> None:
    done, trials = search(Search(max_rate=10_000), threshold(1000))
    assert [(t.rate_events_per_s, t.purpose, t.verdict.outcome) for t in trials] == [
        (10_000, "probe", "unsustainable"),
        (925.926, "bracket", "sustainable"),
        (1080, "bracket", "unsustainable"),
        (1000, "bisect", "sustainable"),
        (1039.23, "bisect", "unsustainable"),
        (1000, "confirm", "sustainable"),
    ]
    assert done == Done(1000, (1000, 1039.23), "found", "1039.23 events/s was not sustained: as told")


@settings(max_examples=300)
@given(
    capacity=st.floats(2, 4e6),
    shows=st.none() | st.floats(0.6, 1.8),
    start=st.none() | st.floats(1, 5e6),
    precision=st.floats(0.01, 0.5),
    confirmations=st.integers(0, 3),
)
def test_the_truth_lies_in_the_interval(
    capacity: float, shows: float | None, start: float | None, precision: float, confirmations: int
) -> None:
    plan = Search(start_rate=start, precision=precision, confirmations=confirmations, max_trials=100)
    done, trials = search(plan, threshold(capacity, shows=shows))
    low, high = done.interval
    assert done.outcome == "found"
    assert high is not None
    assert done.rate_events_per_s == low <= capacity < high <= low * (1 + precision) * 1.0001
    assert sum(t.rate_events_per_s == low for t in trials) == 1 + confirmations
    if shows is not None and start is None:
        assert len(trials) <= 12 + confirmations + math.log2(1 / precision)


@settings(max_examples=300)
@given(
    outcomes=st.lists(
        st.sampled_from(["sustainable", "unsustainable", "inconclusive", "invalid"]), min_size=30, max_size=30
    ),
    carried=st.lists(st.none() | st.floats(1, 1e7), min_size=30, max_size=30),
    budget=st.integers(2, 30),
    start=st.none() | st.floats(1, 5e6),
    grid=st.none() | st.just((10.0, 20.0, 30.0, 40.0, 50.0, 60.0)),
)
def test_whatever_the_verdicts_it_ends_within_budget_and_resumes_from_any_prefix(
    outcomes: list[Outcomes],
    carried: list[float | None],
    budget: int,
    start: float | None,
    grid: tuple[float, ...] | None,
) -> None:
    plan = Search(max_trials=budget, start_rate=start, rates=grid)
    taken: list[Rate] = []

    def run(step: Rate, _: int) -> tuple[Outcomes, float | None]:
        taken.append(step)
        assert grid or plan.min_rate <= step.rate_events_per_s <= plan.max_rate
        return outcomes[len(taken) - 1], carried[len(taken) - 1]

    done, trials = search(plan, run)
    resumed = [_reloaded(trial) for trial in trials]
    assert [next_step(plan, resumed[:i]) for i in range(len(trials))] == taken
    assert next_step(plan, resumed) == done
    low, high = done.interval
    assert done.rate_events_per_s == low
    assert high is None or low < high
    if low:
        assert any(t.rate_events_per_s == low and t.verdict.outcome == "sustainable" for t in trials)
    if high is not None:  # by its last valid verdict, or by two inconclusive ones
        valid = [t.verdict.outcome for t in trials if t.rate_events_per_s == high and t.valid]
        assert "unsustainable" in valid[-2:] or valid[-2:] == ["inconclusive"] * 2


def test_nothing_sustained_down_to_the_least_rate() -> None:
    done, trials = search(Search(min_rate=50, max_rate=1000, max_trials=30), threshold(0.0, shows=None))
    assert (done.rate_events_per_s, done.interval, done.outcome) == (0, (0, 50), "none_sustained")
    assert trials[-1].rate_events_per_s == 50


def test_everything_sustained_up_to_the_highest_rate() -> None:
    done, _ = search(Search(start_rate=100, max_rate=5000), threshold(1e9))
    assert (done.rate_events_per_s, done.interval, done.outcome) == (5000, (5000, None), "all_sustained")


def test_a_spent_budget_is_said() -> None:
    done, trials = search(Search(max_trials=3), threshold(1000))
    assert len(trials) == 3
    assert (done.rate_events_per_s, done.outcome) == (925.926, "budget_spent")
    assert "before a narrower bracket" in done.reason


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"start_rate": 0}, "start_rate: found 0"),
        ({"start_rate": math.nan}, "start_rate: found nan"),
        ({"max_rate": math.inf}, "max_rate: found inf"),
        ({"rates": [100, 0]}, "rates.1: found 0"),
        ({"rates": []}, "rates"),
        ({"rates": [200, 100]}, "allowed: ascending"),
        ({"min_rate": 10, "max_rate": 5}, "min_rate: found 10"),
        ({"start_rate": 50, "max_rate": 40}, "start_rate: found 50, allowed: 1 to 40"),
    ],
)
def test_senseless_rates_are_refused_in_one_line(bad: dict[str, object], message: str) -> None:
    with pytest.raises(UserError) as refused:
        parse(Search, bad, "b.yaml: search")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_one_inconclusive_confirmation_at_the_end_of_the_budget_overturns_nothing() -> None:
    def run(step: Rate, before: int) -> tuple[Outcomes, float | None]:
        return ("inconclusive", None) if before else threshold(1000)(step, before)

    done, trials = search(Search(max_trials=4, max_rate=10_000), run)
    assert [t.verdict.outcome for t in trials[2:]] == ["unsustainable", "inconclusive"]
    assert (done.rate_events_per_s, done.interval, done.outcome) == (925.926, (925.926, 1080), "budget_spent")


def test_all_of_the_budget_goes_into_confirmations_if_need_be() -> None:
    done, trials = search(Search(max_trials=4, confirmations=5), threshold(1000))
    assert [t.purpose for t in trials] == ["probe", "bracket", "confirm", "confirm"]
    assert (done.rate_events_per_s, done.outcome) == (925.926, "budget_spent")
    assert "a narrower bracket and a confirmation" in done.reason


def test_after_an_inconclusive_verdict_trials_are_longer() -> None:
    verdicts: list[Outcome] = ["inconclusive", "sustainable", "unsustainable", "sustainable"]
    plan, trials, asked = Search(rates=(10, 20, 30, 40)), list[Trial](), list[tuple[float, float]]()
    for outcome in verdicts:
        step = next_step(plan, trials)
        assert isinstance(step, Rate)
        asked.append((step.rate_events_per_s, step.seconds_factor))
        trials.append(step.tried(Verdict(outcome, "as told")))
    assert asked == [(20, 1), (20, 2), (30, 2), (20, 2)]
    assert isinstance(done := next_step(plan, trials), Done)
    assert done.rate_events_per_s == 20
