"""The stages search and latency with the known system: what they write, and what they do not repeat."""

from __future__ import annotations

import json
import re
import shutil
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import append_json, read_jsonl, unsealed, write_json
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measurements.latency import stage as latency
from streamgauge.bench.measurements.latency.record import LatencyRun, Quantiles
from streamgauge.bench.measurements.search import stage as search
from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_summary import search_of
from streamgauge.config import load
from streamgauge.metrics.pipeline import Pipeline
from streamgauge.records.measurement import Outcome
from streamgauge.records.trial import TRIALS, WINDOWS
from tests.measure.benches import CELL, Bench, write_bench
from tests.metrics.backend import wait_until
from tests.metrics.carbon import Carbon, carbon

#: a search of some seconds; a busy host may take the CPU away for half of one
QUICK: dict[str, Any] = {"max_age": "1s", "warmup_seconds": 0, "window_seconds": 0.4, "recovery_seconds": 4}
QUICK |= {"proof_steps": 1, "margin": 0.3, "yardstick": True}


def run_search(bench: Bench) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    found = search.run(cell_run)
    directory = cell_run.directory
    assert search_of(directory) == found
    return found.to_json(), read_jsonl(directory / WINDOWS), read_jsonl(directory / TRIALS)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("searched")


def stored(graphite: Carbon, kind: str, name: str, value: str = "value") -> list[float]:
    """Values that Graphite has stored of a metric of the search's trials."""
    return graphite.series(f"streamgauge.b.e_all_known.{kind}.trial.{name}.committed.{value}")


@pytest.fixture
def searched(place: Path) -> Bench:
    """A benchmark whose search has ended, as if no other test had touched it: 2000 rows take 50 + 50 ms.

    The files of the Graphite to which its metrics went are in the folder carbon.
    """
    if not (place / "kept").exists():
        (place / "carbon").mkdir()
        with carbon(place / "carbon") as daemon:
            sink = {"type": "graphite", "host": "127.0.0.1", "port": daemon.port}
            bench = write_bench(
                place, capacity=40_000, batch_cost="50ms", search=QUICK, metrics={"sinks": [sink], "period": "500ms"}
            )
            with Pipeline(bench.benchmark.metrics, bench.benchmark.name).start():
                found, *_ = run_search(bench)
            wait_until(lambda: stored(daemon, "counter", "trials")[-1:] == [found["trials"]], "the last push")
        shutil.copytree(bench.store.run("r"), place / "kept")
        return bench
    bench = Bench(place / "b.yaml", load(place / "b.yaml"), Store(place / "artifacts"))
    shutil.rmtree(bench.store.run("r"))
    shutil.copytree(place / "kept", bench.store.run("r"), dirs_exist_ok=True)
    return bench


def test_a_search_finds_the_rate_proves_it_and_keeps_every_measurement(searched: Bench) -> None:
    bench = searched
    found, windows, trials = run_search(bench)
    assert found["sustainable_rate_events_per_s"] == pytest.approx(20_000, rel=0.1)
    low, high = found["interval"]
    assert low < found["sustainable_rate_events_per_s"] < high
    assert (found["outcome"], found["constraint"], found["interval_of"]) == ("found", "batch cap", "fit")
    [process] = found["processes"]
    assert process["cap_rows"] == 2000
    below, above = found["proven"]
    assert below < found["sustainable_rate_events_per_s"] < above
    assert {t["purpose"]: t["outcome"] for t in trials} == {"below": "sustainable", "above": "unsustainable"}
    numbers = sorted(record["number"] for record in (*windows, *trials))
    assert numbers == list(range(1, len(numbers) + 1))
    assert (found["windows"], found["trials"]) == (len(windows), len(trials))
    assert all(record["window"]["batches"] for record in windows if not record["window"]["invalid"])
    results = read_jsonl(bench.store.run("r") / "results.jsonl")
    units = found["yardstick_units_per_s"]
    assert [(one["metric"], one["valid"], one["value"], one["low"], one["high"]) for one in results] == [
        ("sustainable_rate_events_per_s", True, found["sustainable_rate_events_per_s"], low, high),
        ("sustainable_events_per_yardstick_unit", True, found["events_per_yardstick_unit"], low / units, high / units),
    ]
    assert all(trial["yardstick"] > 0 for trial in trials)

    again, *same = run_search(bench)
    assert same == [windows, trials], "a finished search measures nothing again"
    assert read_jsonl(bench.store.run("r") / "results.jsonl") == results
    assert again["sustainable_rate_events_per_s"] == found["sustainable_rate_events_per_s"]


def test_what_graphite_stores_of_a_search_is_what_its_trials_record(searched: Bench, place: Path) -> None:
    found, _, trials = run_search(searched)  # which reads what is there
    graphite = Carbon(0, place / "carbon")
    assert len(trials) == found["trials"] > 1
    for name in ("offered", "taken"):
        totals = list(accumulate(trial["observation"][name] for trial in trials))
        assert [value for value, _ in groupby(stored(graphite, "counter", f"events_{name}"))] == totals
        assert stored(graphite, "gauge", name)[-1] == trials[-1]["observation"][name]
    last = trials[-1]["observation"]
    assert stored(graphite, "gauge", "backlog")[-1] == last["offered"] - last["taken"]
    assert stored(graphite, "gauge", "rate_events_per_s")[-1] == last["rate_events_per_s"]
    latencies = [trial["details"]["event_latency_ns"] for trial in trials]
    assert stored(graphite, "distribution", "event_latency_ns", "count")[-1] == sum(one["count"] for one in latencies)
    assert stored(graphite, "distribution", "event_latency_ns", "max")[-1] == max(one["max"] for one in latencies)


def test_a_search_goes_on_after_its_last_whole_line_and_not_with_another_plan_s(searched: Bench) -> None:
    bench = searched
    found, windows, trials = run_search(bench)
    directory = bench.store.run("r") / "cells" / CELL.name
    (directory / TRIALS).write_text(json.dumps(trials[0]) + "\n" + '{"number": 3, "rate_ev')  # killed while it wrote
    foreign = {**windows[0], "plan": "another", "number": 99}
    append_json(directory / WINDOWS, foreign)
    again, more, tried = run_search(bench)
    assert more[: len(windows) + 1] == [*windows, foreign], "what was measured stays"
    assert tried[0] == trials[0]
    assert again["max_rate_events_per_s"] == found["max_rate_events_per_s"], "as before the interruption"
    assert again["sustainable_rate_events_per_s"] == pytest.approx(20_000, rel=0.1)
    assert again["outcome"] == "found"


def test_a_wrong_output_voids_the_rate(searched: Bench) -> None:
    bench = searched
    directory = bench.store.run("r") / "cells" / CELL.name
    trials = read_jsonl(directory / TRIALS)
    wrong = [{**t, "correct": False, "trial": {**t["trial"], "correct": False}} for t in trials]
    (directory / TRIALS).write_text("".join(json.dumps(t) + "\n" for t in wrong))
    (bench.store.run("r") / "results.jsonl").unlink()
    found, *_ = run_search(bench)
    assert found["correct"] is False
    rate, per_unit = read_jsonl(bench.store.run("r") / "results.jsonl")
    assert not rate["valid"]
    assert not per_unit["valid"]


def test_latency_is_measured_at_fractions_of_the_rate_that_was_found(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, delay="100ms", latency={"fractions": [0.5, 1.0], "seconds": 1.0})
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    directory = cell_run.directory
    directory.mkdir(parents=True)
    answer = SearchAnswer(sustainable_rate_events_per_s=2000.0, outcome="found", plan=cell_run.plan_key)
    answer.write(directory / "search.json")
    found = [one.to_json() for one in latency.run(cell_run)]
    assert [(f["fraction"], f["rate_events_per_s"], f["valid"]) for f in found] == [(0.5, 1000, True), (1, 2000, True)]
    counted = [(f["event_latency"]["count"] + f["emitted_outside"], f["emitted"]) for f in found]
    assert counted == [(1000, 1000), (2000, 2000)]
    assert all(f["event_latency"]["count"] > 0.5 * f["emitted"] for f in found), "most of it is the steady part"
    assert all(f["event_latency"]["p50_ms"] >= 100 for f in found)
    assert [unsealed(one) for one in json.loads((directory / "latency.json").read_text())] == found
    assert [t["fraction"] for t in read_jsonl(directory / "latency-trials.jsonl")] == [0.5, 1.0]
    results = read_jsonl(directory.parents[1] / "results.jsonl")
    assert {r["metric"]: r["value"] for r in results if "p99_" in r["metric"]} == {
        f"event_latency_ms_p99_at_{percent}pct": f["event_latency"]["p99_ms"]
        for percent, f in zip((50, 100), found, strict=True)
    }


@pytest.mark.parametrize(
    ("outcome", "mark"), [("sustainable", ""), ("unsustainable", "not sustained "), ("inconclusive", "not settled ")]
)
def test_the_latencies_of_a_run_that_did_not_settle_are_results_in_doubt(
    tmp_path: Path, outcome: Outcome, mark: str
) -> None:
    bench = write_bench(tmp_path)
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    seen = Quantiles(count=9, p99_ms=1200.0)
    run = LatencyRun(
        fraction=0.5, rate_events_per_s=9.0, valid=True, outcome=outcome, reason="age grows", event_latency=seen,
    )  # fmt: skip
    p99 = next(one for one in latency.results_of(cell_run, run) if "p99_" in one.metric)
    assert (p99.text, p99.valid, p99.reason) == (f"{mark}1,200 ms", True, "age grows")


def test_a_fraction_of_a_rate_that_is_no_result_is_none_either(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, latency={"fractions": [0.5], "rates": [500], "seconds": 0.5})
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    directory = cell_run.directory
    directory.mkdir(parents=True)
    search = SearchAnswer(sustainable_rate_events_per_s=2000.0, outcome="contradicted", reason="it fell", correct=True)
    search.model_copy(update={"plan": cell_run.plan_key}).write(directory / "search.json")
    (of_rate,) = latency.run(cell_run)
    assert (of_rate.common, of_rate.rate_events_per_s, of_rate.valid) == (True, 500, True)
    claimed = search_of(directory)
    assert claimed.claim
    assert (claimed.claim.kind, claimed.sustainable_rate_events_per_s) == ("contradicted", None)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (None, "e.all.known: no sustainable rate of this run; run the stage search first"),
        (
            {"version": 1, "sustainable_rate_events_per_s": 0.0, "outcome": "inconclusive"},
            "e.all.known: latency cannot be measured. No rate was found",
        ),
        ({"version": 1}, "search.json: damaged, outcome: field required"),
        (
            {"version": 1, "sustainable_rate_events_per_s": 2000.0, "outcome": "found", "plan": "0123456789abcdef"},
            "e.all.known: its search in this run had other settings; run the stage search again",
        ),
    ],
)
def test_without_a_rate_there_is_no_latency(tmp_path: Path, found: dict[str, object] | None, told: str) -> None:
    bench = write_bench(tmp_path)
    cell_run = CellRun(bench.benchmark, bench.store, CELL, bench.store.run("r"))
    if found is not None:
        cell_run.directory.mkdir(parents=True)
        write_json(cell_run.directory / "search.json", {"plan": cell_run.plan_key, **found})
    with pytest.raises(UserError, match=re.escape(told)):
        latency.run(cell_run)
