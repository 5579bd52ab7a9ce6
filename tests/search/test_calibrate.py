"""The search against systems whose truth is known, on a virtual clock: bias, coverage, the command that prints them."""

from __future__ import annotations

import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.bench.search.simulate import calibrate
from streamgauge.config import Search
from tests.cli.test_cli import call


@pytest.mark.parametrize(
    "behaviour",
    [
        Behaviour(1e6, 0.05, 10**9, noise=0.1, between=0.05),
        Behaviour(1e6, 1.0, 200_000, noise=0.05, between=0.05, compile_s=20),
        Behaviour(1e6, noise=0.1, between=0.05, continuous=True),
    ],
    ids=["age", "capped and compiling", "continuous"],
)
def test_the_estimate_is_unbiased_and_its_interval_holds_the_truth(behaviour: Behaviour) -> None:
    """Ten searches tell a bias of 5 % (benchmarks/search.py has the table with a hundred)."""
    found = calibrate(behaviour, Search(processes=3), seeds=10)
    assert abs(found.bias) < 0.05
    assert found.coverage >= 0.7
    assert max(found.seconds) / 3 < 260
    assert all(done.outcome in ("found", "unproven") for done in found.searches)


@pytest.mark.parametrize(
    "behaviour",
    [
        Behaviour(1e3, 0.05, noise=0.05, compile_s=20),
        Behaviour(100, 0.3, noise=0.05),
        Behaviour(1e6, 5.0, noise=0.05),
        Behaviour(1e6, 3.0, 4_000_000, noise=0.05),
        Behaviour(1e3, 3.0, 4_600, noise=0.05),
    ],
    ids=["slow and compiling", "very slow", "half of the age is fixed cost", "capped near", "slow and capped"],
)
def test_windows_lie_at_the_answer_of_a_slow_or_costly_system(behaviour: Behaviour) -> None:
    """20,000 rows would last for minutes, and the line from there to the answer would be a guess.

    A cap of a batch near the answer is met by no smaller batch.
    """
    found = calibrate(behaviour, Search(proof_steps=0, processes=1), seeds=12)
    assert abs(found.bias) < 0.05
    assert found.deviation < 0.08
    assert found.coverage >= 0.75
    widths = [done.interval[1] / done.interval[0] for done in found.searches if done.interval]
    assert max(widths) < 1.8


def test_one_hiccup_is_not_final() -> None:
    """A long batch in the ladder moves the rate by its share of the time, and no proof trial decides by it alone."""

    quiet = calibrate(Behaviour(1e6, 0.3, 200_000, noise=0.02), Search(), seeds=3)
    shaky = calibrate(Behaviour(1e6, 0.3, 200_000, noise=0.02, hiccups=0.005), Search(), seeds=3)
    for one, other in zip(quiet.searches, shaky.searches, strict=True):
        assert other.outcome == "found"
        assert other.rate_events_per_s == pytest.approx(one.rate_events_per_s, rel=0.06)


def test_the_same_seed_is_the_same_search() -> None:
    behaviour = Behaviour(1e5, 0.2, 50_000, noise=0.1, hiccups=0.02, compile_s=10, between=0.05)
    assert calibrate(behaviour, Search(processes=2), 2) == calibrate(behaviour, Search(processes=2), 2)
    assert calibrate(behaviour, Search(), 1, first_seed=1) != calibrate(behaviour, Search(), 1)


def test_calibrate_prints_truth_bias_coverage_and_each_search() -> None:
    found = call(
        "calibrate", "--capacity", "1000000", "--batch-cost", "0.3", "--batch-rows", "200000", "--noise", "0.05",
        "--between", "0.05", "--processes", "3", "--seeds", "4", "--json",
    ).json  # fmt: skip
    assert set(found) == {"truth", "bias", "sd", "coverage", "seconds", "searches"}
    assert found["truth"] == pytest.approx(400_000)
    assert len(found["searches"]) == 4
    held = [low <= 400_000 <= high for low, high in (one["interval"] for one in found["searches"])]
    assert found["coverage"] == sum(held) / 4
    told = call("calibrate", "--capacity", "5000", "--continuous").out
    assert "truth 5,000 events/s" in told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--capacity", "0"], "capacity: found 0, allowed: a number of events per second above 0"),
        (["--capacity", "nan"], "'--capacity': found 'nan', allowed: a number"),
        (["--capacity", "1e6", "--noise", "1"], "noise: found 1, allowed: from 0 to below 1"),
        (["--capacity", "1e6", "--hiccups", "-0.1"], "hiccups: found -0.1, allowed"),
        (["--capacity", "1e6", "--batch-cost", "10"], "batch_cost_s: found 10, allowed: less than the allowed age"),
        (["--capacity", "1e6", "--batch-rows", "0"], "batch_rows: found 0, allowed: 1 or more"),
        (
            ["--capacity", "1e3", "--batch-cost", "10", "--real"],
            "batch_cost_s: found 10, allowed: less than the allowed",
        ),
        (["--capacity", "1e3", "--wander", "0.1", "--real"], "--wander: not with --real"),
        (["--capacity", "1e6", "--seed", "-1"], "--seed"),
        (["--capacity", "1e6", "--age", "0"], "--age: found 0, allowed: seconds from a millionth to a million"),
    ],
)
def test_what_no_system_can_be_is_one_line(options: list[str], said: str) -> None:
    call("calibrate", *options).refused(said)


def test_a_behaviour_is_checked() -> None:
    with pytest.raises(UserError, match="compile_s: found -1, allowed: seconds, 0 or more"):
        Behaviour(compile_s=-1).check()
