"""Rates in a release check: each pair of processes is a ladder of either side."""

from __future__ import annotations

import math
import random
from pathlib import Path
from statistics import mean, stdev

import pytest
from scipy import stats

from streamgauge.app.nights import release_check
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.compare.release_rules import TURNS, decide, series, sides, suspects
from streamgauge.config import RELEASE_RATE
from streamgauge.records.release import Repetition, Side
from streamgauge.results.report.release_page import build
from tests.judge.repetitions import CPU, TOLERANCE, ladders, rounds
from tests.measure.benches import write_bench


def test_pairs_go_a_b_b_a() -> None:
    order = [side[0] for number in (1, 2, 3, 4) for side in sides(number)]
    assert "".join(order) == "bccbbccb"


@pytest.mark.parametrize(
    ("kept", "state", "why"),
    [
        ([0.98, 1.0, 1.02], "passed", "the interval rules out a loss of more than 10%"),
        ([0.78, 0.8, 0.82, 0.8], "failed", "the candidate keeps 80.0% of the rate; the interval excludes 90%"),
        ([0.88, 0.9, 0.92], "open", "the interval neither rules out nor confirms a loss of 10%; 3 such pairs would "
         "find a loss of 15% in 90% of checks"),
        ([0.5, 0.5], "open", "2 sound pairs of processes, at least 3 are needed"),
    ],
)  # fmt: skip
def test_a_rate_is_judged_by_the_interval_of_its_pairs(kept: list[float], state: str, why: str) -> None:
    repetitions = rounds() + ladders(kept)
    found = {one.metric: one for one in series(repetitions, {**TOLERANCE, RELEASE_RATE: 0.1})}
    assert (found[RELEASE_RATE].state, found[RELEASE_RATE].reason) == (state, why)
    assert {found[metric].state for metric in TOLERANCE} == {"passed"}, "each metric has its own repetitions"
    assert suspects(found.values()) == ([] if state == "passed" else [("e.w", True)])
    row = found[RELEASE_RATE]
    if len(kept) < 3:
        assert row.interval is None
        return
    logs = [math.log(part) for part in kept]
    half = stats.t.ppf(0.95, len(kept) - 1) * stdev(logs) / math.sqrt(len(kept))
    assert row.ratio == pytest.approx(math.exp(mean(logs)))
    assert row.interval == pytest.approx((math.exp(mean(logs) - half), math.exp(mean(logs) + half)))
    assert (row.n_baseline, row.n_candidate) == (len(kept), len(kept))


def test_a_suspect_rate_alone_is_measured_again_and_its_figures_stand_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(
        _self: release_check._Check, pair: tuple[str, str], side: Side, number: int, _token: int, *, ladder: bool
    ) -> Repetition:
        part = 0.7 + number / 100 if side == "candidate" else 1.0
        values = {RELEASE_RATE: 9_000 * part} if ladder else {CPU: 40 + number / 10}
        return Repetition(cell=".".join(pair), side=side, round=number, values=values, ladder=ladder)

    monkeypatch.setattr(release_check._Check, "_repetition", measured)
    known = {"engine": "known"}
    release = {"rate": 1000, "queries": [], "compare": ["rate", "cpu"], "reruns": 1}
    bench = write_bench(tmp_path, systems=[{"name": "old", **known}, {"name": "new", **known}], release=release)
    directory = bench.store.run("check")
    found = release_check.run(bench.benchmark, bench.store, "old", "new", directory)

    kept = [(one["round"], one["side"], one["ladder"]) for one in read_jsonl(directory / "release.jsonl")]
    assert kept == [
        *((n, side, False) for n in range(1, 5) for side in TURNS),
        *((n, side, True) for n in range(1, 6) for side in sides(n)),
    ]
    assert (found.verdict, [one.state for one in found.series]) == ("no-go", ["failed", "passed"])
    assert found.line == (
        "no-go: e.all sustainable_rate_events_per_s (estimated): the candidate keeps 73.0% of the rate; the interval "
        "excludes 90%"
    )
    rows = {(r["system"], r["metric"]): r for r in read_jsonl(directory / "results.jsonl")}
    rate = rows["new", "sustainable_rate_events_per_s_in_turns"]
    assert (rate["value"], rate["unit"], rate["samples"], rate["claim"]) == (6570, "events/s", 5, "estimated")
    assert rows["old", f"{CPU}_at_1000_per_s"]["samples"] == 8
    assert "73.0% of the rate" in build(directory).read_text()


def test_the_lines_of_a_check_mark_a_rate_that_is_not_proven() -> None:
    for claim, mark in (("proven", ""), ("estimated", " (estimated)")):
        first, *others = ladders([0.78, 0.8, 0.82, 0.8], claim="proven")
        judged = series([first.model_copy(update={"claim": claim}), *others], {RELEASE_RATE: 0.1})
        assert decide([], judged).line.startswith(f"no-go: e.w {RELEASE_RATE}{mark}: the candidate keeps 80.0%")
        assert [one.name for one in judged] == [f"e.w {RELEASE_RATE}{mark}"]
    [one, _] = ladders([1.0], claim="estimated")
    assert one.text.startswith(f"{RELEASE_RATE} (estimated) ")


def test_a_rate_that_only_the_driver_limits_is_no_pair() -> None:
    void = ladders([1.0, 1.0, 1.0], void="The system sustained all that was offered, so it may carry more.")
    [one] = series(void, {RELEASE_RATE: 0.1})
    assert one.reason.startswith("0 sound pairs of processes, at least 3 are needed; the last one is void: The system")
    assert decide([], [one]).decision == "inconclusive"


def test_the_gate_of_rates_keeps_its_error_rates() -> None:
    """Checks eight pairs, whose processes differ by 5 %: at a tolerated loss of 10 % a wrong verdict is rare."""

    def verdicts(kept: float) -> list[str]:
        draw = random.Random(round(1000 * kept))
        checks = ([kept * draw.lognormvariate(0, 0.05 * math.sqrt(2)) for _ in range(8)] for _ in range(300))
        return [series(ladders(check), {RELEASE_RATE: 0.1})[0].state for check in checks]

    assert verdicts(1.0).count("failed") == 0
    assert verdicts(1.0).count("passed") >= 285
    at_the_bound = verdicts(0.9)
    assert max(at_the_bound.count("failed"), at_the_bound.count("passed")) <= 25, (
        "5 % each; 25 of 300 is beyond 1 in 100"
    )
    assert verdicts(0.8).count("failed") >= 265
    assert verdicts(0.8).count("passed") == 0
