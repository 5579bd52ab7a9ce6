"""The stages search and latency with the known system: what they write, and what they do not repeat."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from streamgauge.artifacts import append_json, read_jsonl, write_json
from streamgauge.errors import UserError
from streamgauge.measure import latency, search
from streamgauge.measure.search import cell_directory, plan_hash
from tests.measure.benches import CELL, Bench, write_bench
from tests.measure.test_cell import no_session

GRID = {"rates": [500, 1000, 8000, 9000], "confirmations": 0, "trial_seconds": 1.0, "warmup_batches": 1}
GRID |= {"max_age_slope": 0.4, "min_batches": 3}  # a busy host slows nobody that much; an overload of five times is 0.8


def run_search(bench: Bench) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    run = bench.store.run("r")
    found = search.run(bench.benchmark, bench.store, CELL, run, no_session)
    assert json.loads((cell_directory(run, CELL) / "search.json").read_text()) == found
    return found, read_jsonl(cell_directory(run, CELL) / "trials.jsonl")


def test_a_search_writes_its_trials_and_a_finished_one_repeats_none(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, capacity=1500, search=GRID)
    found, trials = run_search(bench)
    assert (found["sustainable_rate_events_per_s"], found["interval"]) == (1000, [1000, 8000])
    assert (found["outcome"], found["trials"]) == ("found", 2)
    assert [(t["number"], t["rate_events_per_s"], t["outcome"]) for t in trials] == [
        (1, 1000, "sustainable"),
        (2, 8000, "unsustainable"),
    ]
    [result] = read_jsonl(bench.store.run("r") / "results.jsonl")
    assert (result["metric"], result["value"], result["valid"]) == ("sustainable_rate_events_per_s", 1000, True)
    again, same = run_search(bench)
    assert same == trials
    assert read_jsonl(bench.store.run("r") / "results.jsonl") == [result]
    assert {**again, **dict.fromkeys(CEILING)} == {**found, **dict.fromkeys(CEILING)}


CEILING = ("driver_ceiling_events_per_s", "driver_cpu_us_per_event")


def record(
    bench: Bench, number: int, rate: float, outcome: str, *, invalid: str | None = None, search: int = 1
) -> None:
    directory = cell_directory(bench.store.run("r"), CELL)
    directory.mkdir(parents=True, exist_ok=True)
    reason = f"invalid trial: {invalid}" if invalid else "as told"
    line = {"number": number, "purpose": "bisect", "rate_events_per_s": rate, "outcome": outcome, "reason": reason}
    line |= {"figures": {}, "carried_events_per_s": None, "observation": {"invalid": invalid}}
    line |= {"plan": plan_hash(bench.benchmark, CELL), "search": search, "max_rate": 100_000}
    append_json(directory / "trials.jsonl", line)


def test_a_search_goes_on_after_its_last_whole_line_and_not_with_another_plan_s(tmp_path: Path) -> None:
    other = write_bench(tmp_path, search={**GRID, "confirmations": 1})
    record(other, 1, 500, "unsustainable")
    bench = write_bench(tmp_path, search=GRID)
    record(bench, 1, 1000, "sustainable")
    record(bench, 2, 8000, "sustainable")
    with open(cell_directory(bench.store.run("r"), CELL) / "trials.jsonl", "a") as lines:
        lines.write('{"number": 3, "rate_ev')  # killed while it wrote
    found, trials = run_search(bench)
    assert [(t["number"], t["rate_events_per_s"]) for t in trials] == [(1, 500), (1, 1000), (2, 8000), (3, 9000)]
    assert (found["sustainable_rate_events_per_s"], found["outcome"], found["trials"]) == (9000, "all_sustained", 3)
    assert found["max_rate_events_per_s"] == 100_000  # as before the interruption, whatever the ceiling is now


def test_of_repeated_searches_the_median_counts_and_the_spread_is_told(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, search={**GRID, "repeats": 3})
    for number, (below, above) in enumerate([(8000, 9000), (500, 1000), (1000, 8000)], start=1):
        record(bench, 1, below, "sustainable", search=number)
        record(bench, 2, above, "unsustainable", search=number)
    found, trials = run_search(bench)
    assert len(trials) == 6, "nothing is measured again"
    assert (found["search"], found["interval"], found["trials"]) == (3, [1000, 8000], 2)
    assert (found["repeats"], found["spread"]) == ([8000, 500, 1000], 7.5)


def test_invalid_trials_are_read_back_as_no_evidence(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, search=GRID)
    record(bench, 1, 1000, "sustainable")
    for number in (2, 3):
        record(bench, number, 8000, "inconclusive", invalid="the driver limited this trial")
    found, trials = run_search(bench)
    assert len(trials) == 3
    assert (found["sustainable_rate_events_per_s"], found["interval"]) == (1000, [1000, None])
    assert found["outcome"] == "inconclusive"
    assert found["reason"] == "nothing is known of 8000 events/s: invalid trial: the driver limited this trial"
    [result] = read_jsonl(bench.store.run("r") / "results.jsonl")
    assert (result["valid"], result["reason"]) == (False, found["reason"])


def test_latency_is_measured_at_fractions_of_the_rate_that_was_found(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, delay="100ms", latency={"fractions": [0.5, 1.0], "seconds": 1.0})
    directory = cell_directory(bench.store.run("r"), CELL)
    directory.mkdir(parents=True)
    write_json(directory / "search.json", {"sustainable_rate_events_per_s": 2000.0})
    found = latency.run(bench.benchmark, bench.store, CELL, directory.parents[1], no_session)
    assert [(f["fraction"], f["rate_events_per_s"], f["valid"]) for f in found] == [(0.5, 1000, True), (1, 2000, True)]
    assert [f["event_latency"]["count"] for f in found] == [1000, 2000]
    assert all(f["event_latency"]["p50_ms"] >= 100 for f in found)
    assert json.loads((directory / "latency.json").read_text()) == found
    assert [t["fraction"] for t in read_jsonl(directory / "latency-trials.jsonl")] == [0.5, 1.0]
    results = read_jsonl(directory.parents[1] / "results.jsonl")
    assert {r["metric"]: r["value"] for r in results if "p99" in r["metric"]} == {
        f"event_latency_ms_p99_at_{percent}pct": f["event_latency"]["p99_ms"]
        for percent, f in zip((50, 100), found, strict=True)
    }


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (None, "e.all.known: no sustainable rate of this run; run the stage search first"),
        ({"sustainable_rate_events_per_s": 0.0}, "e.all.known: no rate was sustained, so there is none"),
        ({}, "e.all.known: no sustainable rate of this run"),
    ],
)
def test_without_a_rate_there_is_no_latency(tmp_path: Path, found: dict[str, float] | None, told: str) -> None:
    bench = write_bench(tmp_path)
    directory = cell_directory(bench.store.run("r"), CELL)
    if found is not None:
        directory.mkdir(parents=True)
        write_json(directory / "search.json", found)
    with pytest.raises(UserError, match=re.escape(told)):
        latency.run(bench.benchmark, bench.store, CELL, directory.parents[1], no_session)
