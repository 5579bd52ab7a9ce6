"""Nonsense from a system under test makes its trial invalid, with a reason, and never a stack trace."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver import figures
from streamgauge.bench.driver.client import Connection, RefusedError
from streamgauge.bench.driver.observed import collect
from streamgauge.bench.driver.requests import Malformed, checked, parsed
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.records.rules import Operator, Rules
from tests.driver.conftest import Serve
from tests.driver.in_thread import WORKLOAD
from tests.driver.seen import observed

REQUEST = TrialRequest(WORKLOAD, Path("."), 10, 1)
S = 10**9
SOUND = Histogram()
SOUND.add(np.array([5, 900, 70_000]))
LATENCY = SOUND.to_dict()
BODY: dict[str, Any] = {
    "rows": 3, "checksum": 7, "event_latency": LATENCY, "processing_latency": LATENCY,
    "emitted_wall_ns": [2 * S, 3 * S], "emitted_mean_wall_ns": 2 * S + 5, "clock_offset_ns": [-4, 9],
    "batch": {"late": 2, "of its own": []},
}  # fmt: skip


def refusal(body: object) -> str | None:
    line = json.dumps({"verb": "report", "attempt": "a", "epoch": 1, "body": body}).encode()
    try:
        checked(parsed(line))
    except Malformed as problem:
        return str(problem)
    return None


def test_a_sound_report_counts() -> None:
    assert refusal(BODY) is None


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"rows": -1}, "body.rows: found -1, allowed: a whole number from 0 on"),
        ({"rows": 2**64}, "body.rows: found 18446744073709551616"),
        ({"rows": math.nan}, "body.rows: found nan"),
        ({"rows": True}, "body.rows: found True"),
        ({"rows": 2}, "body.event_latency: found 3 latencies of 2 rows, allowed: one a row"),
        ({"checksum": "9e37"}, "body.checksum: found '9e37', allowed: a whole number of 64 bits"),
        ({"checksum": [7]}, "body.checksum: found [7]"),
        ({"checksum": 2**64}, "body.checksum: found 18446744073709551616"),
        ({"checksum": 7.0}, "body.checksum: found 7.0"),
        ({"event_latency": None}, "body.event_latency: found None, allowed: a histogram"),
        ({"event_latency": LATENCY | {"min": 70_000, "max": 5}}, "body.event_latency: found {"),
        ({"event_latency": LATENCY | {"min": -5}}, "body.event_latency: found {"),
        ({"event_latency": LATENCY | {"max": math.inf}}, "body.event_latency: found {"),
        ({"event_latency": LATENCY | {"max": 10**9}}, "body.event_latency: found {"),
        ({"event_latency": LATENCY | {"counts": [1, 3, -1]}}, "body.event_latency: found {"),
        ({"event_latency": LATENCY | {"counts": [1, 1, 1.5]}}, "body.event_latency: found {"),
        ({"event_latency": LATENCY | {"counts": [2**63, 1, 1]}}, "body.event_latency: found {"),
        ({"event_latency": LATENCY | {"negative": -1}}, "body.event_latency: found {"),
        ({"event_latency": LATENCY | {"sum": 10**12}}, "body.event_latency: found {"),
        ({"event_latency": LATENCY | {"buckets": LATENCY["buckets"][::-1]}}, "body.event_latency: found {"),
        ({"emitted_wall_ns": [3, 2]}, "body.emitted_wall_ns: found [3, 2]"),
        ({"emitted_mean_wall_ns": 1}, "body.emitted_mean_wall_ns: found 1, allowed: 2000000000 to 3000000000"),
        ({"clock_offset_ns": [0, -1]}, "body.clock_offset_ns: found [0, -1]"),
        ({"batch": []}, "body.batch: found [], allowed: an object"),
        ({"batch": {"late": None}}, "body.batch: found None, allowed: an object, with whole numbers of late events"),
    ],
)
def test_nonsense_is_refused_in_one_line(change: dict[str, Any], error: str) -> None:
    assert (told := refusal(BODY | change)) is not None
    assert told.startswith(error), told
    assert "\n" not in told


@pytest.mark.parametrize("body", [None, [], [BODY], "x", 5])
def test_a_body_that_is_no_object_is_refused(body: object) -> None:
    assert str(refusal(body)).endswith("allowed: an object, as in the protocol")


def test_a_trial_whose_report_was_refused_is_invalid_even_if_the_system_goes_on(serve: Serve) -> None:
    with Connection(serve([i * 1000 for i in range(100)])) as talk:
        talk.open("a", 10, 1)
        with pytest.raises(RefusedError):
            talk.report("a", 0, BODY | {"rows": -3})
        with pytest.raises(RefusedError):
            talk.report("a", 0, BODY | {"rows": -4})
        talk.report("a", 1, BODY)
        seen = talk.observe()
    found = collect(REQUEST, [seen], {}, [])
    assert found.invalid == "a report was refused: body.rows: found -3, allowed: a whole number from 0 on"


def test_a_latency_beyond_reason_is_told() -> None:
    long = Histogram()
    long.add(np.array([2**62]))
    seen = observed({4: BODY | {"processing_latency": long.to_dict()}}, start_wall_ns=S)
    told = str(collect(REQUEST, [seen], {}, []).invalid)
    assert told.startswith("the report of epoch 4 is unusable: ")
    assert "found a latency of 4.612e+09 s, allowed: at most a year" in told


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
HISTOGRAMS = st.builds(lambda name, value: LATENCY | {name: value}, st.sampled_from(sorted(LATENCY)), JSON)
BODIES = JSON | st.builds(
    lambda changes: BODY | changes,
    st.dictionaries(st.sampled_from(sorted(BODY)), JSON | HISTOGRAMS, max_size=2),
)


@given(BODIES)
def test_any_body_is_refused_or_makes_an_epoch(body: object) -> None:
    if refusal(body) is not None:
        return
    samples = [(S, 0.1, 0, 3), (2 * S, 0.1, 0, 3)]
    seen = observed({1: json.loads(json.dumps(body))}, start_wall_ns=S, samples=samples)
    found = collect(replace(REQUEST, bounds=Bounds(max_clock_offset_s=1e12)), [seen], {}, [])
    if found.invalid is not None:
        assert "before" in found.invalid or "allowed: at most a year" in found.invalid, found.invalid
    assert [epoch["epoch"] for epoch in found.details["epochs"]] in ([1], [])
    assert found.details["emitted"] >= 0


RULES = Rules((Operator("window", 5, 5),), 9)
FIGURES: dict[str, Any] = {
    "drained": True, "failure": None, "cpu_seconds": 1.5, "rss_bytes": 10, "late_dropped": 3,
    "batches": [{"batch_id": 0, "ends": [{"0": 5}], "watermark_ms": None, "dropped": 0}],
    "stretches": [{"ends": [{"0": 5}], "watermark_ms": 5}], "its own": [1, None],
}  # fmt: skip


def test_sound_figures_stay_as_they_are() -> None:
    assert figures.checked(FIGURES, RULES) == (FIGURES, None)
    assert figures.checked(FIGURES | {"rules": Rules((Operator("window", 5, 5),), 9)}, RULES) == (FIGURES, None)
    assert figures.checked({}, RULES) == ({}, None)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (None, "found None, allowed: an object"),
        ([1], "found [1], allowed: an object"),
        (FIGURES | {"cpu_seconds": math.nan}, "cpu_seconds: found nan, allowed: "),
        (FIGURES | {"cpu_seconds": math.inf}, "cpu_seconds: found inf, allowed: "),
        (FIGURES | {"cpu_seconds": -1}, "cpu_seconds: found -1, allowed: greater than or equal to 0"),
        (FIGURES | {"cpu_seconds": "1"}, "cpu_seconds: found '1', allowed: "),
        (FIGURES | {"rss_bytes": -1}, "rss_bytes: found -1, allowed: "),
        (FIGURES | {"late_dropped": 2**64}, "late_dropped: found 18446744073709551616, allowed: "),
        (FIGURES | {"batches": None, "stretches": {}}, "stretches: found {}, allowed: a valid list"),
        (FIGURES | {"batches": [None]}, "batches.0: found None, allowed: "),
        (FIGURES | {"batches": [{"ends": []}]}, "batches.0.watermark_ms: found "),
        (FIGURES | {"stretches": [{"ends": [{"0": -1}], "watermark_ms": 0}]}, "stretches.0.ends.0.0: found -1"),
        (FIGURES | {"rules": {"late": 1}}, "rules: found {'late': 1}, allowed: Rules(…) of streamgauge.records.rules"),
        (
            FIGURES | {"rules": replace(RULES, clock="own key", delay_us=8)},
            "rules: found delay_us 8, clock 'own key', allowed: delay_us 9, clock 'all queues', as ",
        ),
        (FIGURES | {"check": {}}, "check.wrong: found {}, allowed: "),
        (FIGURES | {"its own": math.nan}, "found what is no JSON ("),
        (FIGURES | {"its own": object}, "found what is no JSON ("),
    ],
)
def test_figures_that_are_none_are_told(told: object, why: str) -> None:
    found, unusable = figures.checked(told, RULES)
    assert found == {}
    assert str(unusable).startswith(f"the system's figures: {why}"), unusable


@pytest.mark.parametrize("used", [math.nan, math.inf, -1.0, "1", [1], True, 1e300])
def test_cpu_seconds_that_are_none_are_told(used: object) -> None:
    shown = str(used) if isinstance(used, float) and not math.isfinite(used) else repr(used)
    assert figures.seconds(lambda: used) == (
        None, f"the system's cpu_seconds: found {shown}, allowed: seconds, 0 or more",
    )  # fmt: skip


def test_cpu_seconds_may_be_unknown() -> None:
    assert figures.seconds(lambda: None) == (None, None)
    assert figures.seconds(lambda: 3) == (3.0, None)


@given(st.dictionaries(st.sampled_from(sorted(FIGURES)), JSON, max_size=4) | JSON)
def test_any_figures_are_taken_or_told(told: object) -> None:
    found, unusable = figures.checked(told, RULES)
    assert (unusable is None) == (found == told)
    assert "\n" not in str(unusable)
