"""Delay tables and draws: bounds, reproducibility, and shape against the textbook distribution."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from streamgauge import config
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import write_record
from streamgauge.streams.disorder.delays import DelayTable, draw, table
from tests.flips import flipped

SECOND = 10**9


def spec(**settings: Any) -> config.DelaySpec:
    return config.DelaySpec.model_validate(settings)


def draws(delay_table: DelayTable, n: int = 200_000, seed: int = 1) -> np.ndarray:
    return draw(seed, np.arange(n), delay_table)[1]


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.integers(0, 2**63 - 1))
def test_uniform_stays_within_its_bounds_at_any_width(low: int, width: int, seed: int) -> None:
    high = min(low + width, 2**62)
    got = draw(seed, np.arange(100), DelayTable((low, max(low, high))))[1]
    assert low <= got.min() <= got.max() <= max(low, high)


@given(st.lists(st.integers(0, 2**62), min_size=5, max_size=5), st.integers(0, 2**63 - 1))
def test_a_table_of_any_steps_interpolates_exactly(steps: list[int], seed: int) -> None:
    ticks = sorted(steps)
    got = draw(seed, np.arange(50), DelayTable(tuple(ticks)))[1].tolist()
    u32 = [int(x) & 0xFFFFFFFF for x in splitmix_reference(seed, 50)]
    expected = [ticks[u >> 30] + (ticks[(u >> 30) + 1] - ticks[u >> 30]) * (u & (2**30 - 1)) // 2**30 for u in u32]
    assert got == expected


def splitmix_reference(seed: int, n: int) -> list[int]:
    return [splitmix_of(seed, i) for i in range(n)]


def splitmix_of(seed: int, number: int) -> int:
    """splitmix64's mixer in plain integers, keyed by the mixed seed."""
    mask = 2**64 - 1

    def mix(x: int) -> int:
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        return x ^ (x >> 31)

    return mix(((number * 0x9E3779B97F4A7C15) & mask) ^ mix((seed + 0x9E3779B97F4A7C15) & mask))


def test_both_ends_of_a_small_uniform_range_are_drawn() -> None:
    assert set(draws(DelayTable((3, 6)), 1_000).tolist()) == {3, 4, 5, 6}


@pytest.mark.parametrize(
    ("settings", "reference"),
    [
        ({"distribution": "uniform", "max": "10s"}, stats.uniform(0, 10)),
        ({"distribution": "normal", "max": "10s", "mean": "4s", "stddev": "2s"}, stats.truncnorm(-2, 3, 4, 2)),
        ({"distribution": "exponential", "max": "100s", "mean": "3s"}, stats.truncexpon(100 / 3, 0, 3)),
        ({"distribution": "lognormal", "max": "10000s", "mean": "5s", "sigma": 0.5}, stats.lognorm(0.5, 0, 5)),
        (
            {"distribution": "pareto", "max": "1000000s", "mean": "2s", "alpha": 3},
            stats.lomax(3, 0, 2 / (2 ** (1 / 3) - 1)),
        ),
    ],
    ids=lambda p: p["distribution"] if isinstance(p, dict) else "",
)
def test_drawn_delays_follow_the_distribution(settings: dict[str, Any], reference: Any) -> None:
    got = draws(table(spec(**settings), "ns")) / SECOND
    assert stats.kstest(got, reference.cdf).statistic < 0.004


def test_constant_is_constant() -> None:
    assert set(draws(table(spec(distribution="constant", max="2s"), "ns"), 100).tolist()) == {2 * SECOND}


def test_empirical_draws_from_a_measured_profile_and_skips_its_gaps(tmp_path: Path) -> None:
    profile = {"tick": "ns", "delay_histogram": [[100, 200, 3], [1_000, 2_000, 1]]}
    (tmp_path / "profile.json").write_text(json.dumps(profile))
    got = draws(table(spec(distribution="empirical", max="1s", profile=str(tmp_path / "profile.json")), "ns"))
    assert math.isclose((got <= 200).mean(), 0.75, abs_tol=0.01)
    assert not ((got > 201) & (got < 999)).mean() > 0.001


def test_empirical_draws_from_a_profile_with_a_flipped_bit_as_before_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "profile.json"
    write_record(file, {"tick": "ns", "delay_histogram": [[100, 200, 3], [1_000, 2_000, 1]]})
    wanted, refused = draws(table(spec(distribution="empirical", max="1s", profile=str(file)), "ns")), list[str]()
    for copy in flipped(file.read_bytes(), 7, 60):
        file.write_bytes(copy)
        try:
            got = draws(table(spec(distribution="empirical", max="1s", profile=str(file)), "ns"))
        except UserError as told:
            refused.append(str(told))
        else:
            assert (got == wanted).all()
    assert len(refused) > 30
    assert all(one.startswith(f"delay.profile {file}: not a profile.json of streamgauge analyze (") for one in refused)


def test_empirical_is_truncated_like_the_others_and_says_how_far_its_profile_reaches(tmp_path: Path) -> None:
    profile = {"tick": "ps", "delay_histogram": [[0, 10_000, 1], [10_000, 30_000, 8]]}  # 0 to 10 and 10 to 30 ns
    (tmp_path / "profile.json").write_text(json.dumps(profile))
    settings = {"distribution": "empirical", "profile": str(tmp_path / "profile.json")}
    got = draws(table(spec(**settings, min="10ns", max="20ns"), "ns"))
    assert (got.min(), got.max()) == (10, 20)
    assert math.isclose(got.mean(), 15, abs_tol=0.5)
    with pytest.raises(UserError, match=r"the profile's delays reach from 0 s to 30 ns, none lies within 40ns to 2s"):
        table(spec(**settings, min="40ns"), "ns")
    for wrong in (5, [[1, 2]], [["a", 1, 2]], None):
        (tmp_path / "profile.json").write_text(json.dumps({"tick": "ns", "delay_histogram": wrong}))
        with pytest.raises(UserError, match=r"not a profile.json"):
            table(spec(**settings), "ns")


@pytest.mark.parametrize("name", ["normal", "exponential", "lognormal", "pareto"])
def test_an_empty_range_leaves_one_delay(name: str) -> None:
    assert set(table(spec(distribution=name, min="2s", max="2s"), "ns").ticks) == {2 * SECOND}


def test_a_module_that_fails_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_delays.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match="broken_delays:f cannot be loaded: ZeroDivisionError: division by zero"):
        table(spec(distribution="broken_delays:f"), "ns")


def late_only(quantile: float, low: int, high: int) -> float:
    return low + (high - low) * float(quantile**0.5)


def decreasing(quantile: float, low: int, high: int) -> float:
    return high - (high - low) * quantile


def test_a_registered_distribution_is_a_users_inverse_cdf() -> None:
    got = draws(table(spec(distribution=f"{__name__}:late_only", max="1s"), "ns")) / SECOND
    assert stats.kstest(got, lambda x: np.clip(x, 0, 1) ** 2).statistic < 0.004


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"distribution": "zipf"}, "found 'zipf', allowed: uniform, constant, normal"),
        ({"distribution": "nowhere:f"}, "cannot be loaded: ModuleNotFoundError: No module named 'nowhere'; install"),
        ({"distribution": f"{__name__}:decreasing"}, "an inverse CDF must not"),
        ({"distribution": "empirical"}, "delay.profile: this key is missing"),
        ({"distribution": "exponential", "mean": "0s"}, "above delay.min"),
        (
            {"distribution": "normal", "min": "5s", "max": "6s", "mean": "1ms", "stddev": "1ns"},
            "no probability between",
        ),
        ({"distribution": "pareto", "alpha": 1e-4}, "its parameters are out of range"),
        ({"max": "1ps"}, "not a whole number of ns"),
    ],
)
def test_unusable_distributions_are_refused_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        table(spec(**settings), "ns")


def test_draws_are_pinned_so_that_streams_stay_rebuildable() -> None:
    """A change here changes every stream: raise ALGORITHM['stream'] with it."""
    select, delay = draw(42, np.arange(4), DelayTable((0, 2 * SECOND)))
    assert list(zip(select.tolist(), delay.tolist(), strict=True)) == PINNED


PINNED = [(11431, 940898286), (14556, 1148589313), (1591, 1300738330), (11541, 1499997399)]
