"""The stage turns with known systems: the order of the turns, what a killed one goes on with, what a failure costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import Outage
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.measure import turns
from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.search.steps import Hold
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import Cell
from streamgauge.records.measurement import Window
from streamgauge.records.trial import WINDOWS
from streamgauge.results.report.run_records import Records
from tests.measure.benches import Bench, write_bench

PLAN: dict[str, Any] = {"max_age": "1s", "warmup_seconds": 0, "window_seconds": 0.3, "proof_steps": 0}
PLAN |= {"processes": 2, "in_turns": True}
LATENCY = {"fractions": [0.5], "rates": [4000], "seconds": 2}
KNOWN = {"engine": "known", "capacity": 40_000, "batch_cost": "50ms", "batch_rows": 2000, "trigger": "50ms"}


def bench_of(place: Path, *systems: dict[str, Any]) -> Bench:
    return write_bench(place, search=PLAN, latency=LATENCY, systems=list(systems))


def cell(system: str) -> Cell:
    return Cell(experiment="e", workload="all", system=system)


def searched(log: RunLog) -> list[tuple[str, str]]:
    return [(stage.scope["system"], stage.state) for stage in log.stages() if stage.stage == "search"]


def test_cells_take_turns_and_a_stage_that_was_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of(tmp_path, {"name": "a", **KNOWN}, {"name": "b", **KNOWN})
    log, cells = RunLog(bench.store.run("r")), bench.benchmark.all_cells()
    measured = ReadyCell.window

    def killed(self: ReadyCell, *args: Any, **more: Any) -> Any:
        if self.cell.system == "b" and read_jsonl(log.path / "cells" / cell("b").name / WINDOWS):
            raise KeyboardInterrupt
        return measured(self, *args, **more)

    monkeypatch.setattr(ReadyCell, "window", killed)
    with pytest.raises(KeyboardInterrupt):
        turns.run(bench.benchmark, bench.store, log, cells)
    assert searched(log) == [("a", "partly"), ("b", "failed")]
    summaries = [Records(bench.benchmark, bench.store, "r").status("search", **one.model_dump()) for one in cells]
    assert [(one.outcome, one.reason) for one in summaries[:1]] == [("unfinished", "done only in part")]
    before = {one.system: read_jsonl(log.path / "cells" / one.name / WINDOWS) for one in cells}
    assert (len(before["a"]) > 1, len(before["b"])) == (True, 1)

    monkeypatch.setattr(ReadyCell, "window", measured)
    turns.run(bench.benchmark, bench.store, log, cells)
    assert searched(log)[2:] == [("b", "partly"), ("a", "done"), ("b", "done")], "round 1 of a is not repeated"
    for one in cells:
        directory = log.path / "cells" / one.name
        windows = read_jsonl(directory / WINDOWS)
        assert windows[: len(before[one.system])] == before[one.system]
        found = json.loads((directory / "search.json").read_text())
        assert [process["process"] for process in found["processes"]] == [1, 2]
        assert found["sustainable_rate_events_per_s"] == pytest.approx(20_000, rel=0.15)
        runs = json.loads((directory / "latency.json").read_text())
        assert [(run["rate_events_per_s"], run["common"]) for run in runs] == [
            (found["sustainable_rate_events_per_s"] / 2, False), (4000, True)
        ]  # fmt: skip
    results = read_jsonl(log.path / "results.jsonl")
    assert {r["metric"] for r in results if "p99" in r["metric"] and "p999" not in r["metric"]} == {
        "event_latency_ms_p99_at_50pct", "event_latency_ms_p99_at_4000_per_s"
    }  # fmt: skip
    turns.run(bench.benchmark, bench.store, log, cells)
    assert len(searched(log)) == 5, "a finished run measures nothing again"


def test_a_cell_that_fails_costs_no_other_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of(tmp_path, {"name": "bad", **KNOWN}, {"name": "good", **KNOWN})
    log, measured = RunLog(bench.store.run("r")), ReadyCell.window

    def window(self: ReadyCell, *args: Any, **more: Any) -> Any:
        if self.cell.system == "bad":
            raise RuntimeError("it does not run here")
        return measured(self, *args, **more)

    monkeypatch.setattr(ReadyCell, "window", window)
    with pytest.raises(Outage) as failed:
        turns.run(bench.benchmark, bench.store, log, bench.benchmark.all_cells())
    assert str(failed.value) == "1 of 2 cells failed; the first: e.all.bad: it does not run here"
    assert searched(log) == [("bad", "failed"), ("good", "partly"), ("good", "done")]
    latest = log.latest("latency", **cell("good").model_dump())
    assert latest is not None
    assert latest.state == "done"


def test_cells_that_differ_in_their_stream_share_a_process_and_no_block_counts_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both experiments have one stream, so the ratio is 1; the process dies with the controller in the third block."""
    experiments = [{"name": name, "target_percent": 0, "seed": seed} for seed, name in enumerate("ef")]
    plan = PLAN | {"processes": 1, "blocks": 5, "ratio_error": 0.9}
    bench = write_bench(
        tmp_path,
        search=plan,
        latency=LATENCY | {"blocks": 5},
        systems=[{"name": "a", **KNOWN}],
        experiments=experiments,
    )
    log, cells = RunLog(bench.store.run("r")), bench.benchmark.all_cells()
    measured, pairs = ReadyCell.window, list[str]()

    def killed(self: ReadyCell, step: Hold, *, token: int) -> Window:
        if len(pairs) == 9:
            pairs.append("killed")
            raise KeyboardInterrupt
        pairs.extend([self.cell.experiment] if step.purpose == "pair" else [])
        return measured(self, step, token=token)

    monkeypatch.setattr(ReadyCell, "window", killed)
    with pytest.raises(KeyboardInterrupt):
        turns.run(bench.benchmark, bench.store, log, cells)
    turns.run(bench.benchmark, bench.store, log, cells)
    assert [(stage.scope["experiment"], stage.state) for stage in log.stages() if stage.stage == "search"] == [
        ("e", "failed"), ("f", "failed"), ("e", "done"), ("f", "done")
    ]  # fmt: skip
    windows = {
        one.experiment: [record["window"] for record in read_jsonl(log.path / "cells" / one.name / WINDOWS)]
        for one in cells
    }
    kept = [w for own in windows.values() for w in own if w["purpose"] == "pair"]
    assert sorted({(w["block"], w["life"]) for w in kept}) == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 2)]
    found = {one.experiment: json.loads((log.path / "cells" / one.name / "search.json").read_text()) for one in cells}
    assert [found[name]["cell"]["experiment"] for name in "ef"] == ["e", "f"]
    assert found["e"]["compared"] == []
    compared, *latencies = found["f"]["compared"]
    assert [one["metric"] for one in latencies] == ["p50", "p99"]
    assert all(one | {"against": "e", "blocks": 5, "processes": 1} == one for one in latencies)
    assert latencies[0]["ratio"] == pytest.approx(1, abs=0.2), "one stream against itself"
    (turned,) = read_jsonl(log.path / "cells" / cells[1].name / "latency-turns.jsonl")
    assert (turned["rate_events_per_s"], turned["invalid"], len(turned["event_latency"])) == (4000, None, 10)
    about = {"experiment": "f", "against": "e", "workload": "all", "system": "a", "processes": 1}
    assert compared | about == compared
    assert compared["blocks"] >= 5
    assert compared["ratio"] == pytest.approx(1, abs=0.1)
    assert [len(found[name]["processes"]) for name in "ef"] == [1, 1]
    runs = json.loads((log.path / "cells" / cells[1].name / "latency.json").read_text())
    assert [run["rate_events_per_s"] for run in runs][1:] == [4000]
