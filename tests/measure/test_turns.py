"""The stage turns with known systems: the order of the turns, what a killed one goes on with, what a failure costs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.base.errors import Outage, UserError
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.measure import shared_latency, turns
from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measurements.latency import stage as latency
from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.bench.search.steps import Hold
from streamgauge.catalog import results
from streamgauge.catalog.run_log import RunLog
from streamgauge.catalog.run_summary import search_of
from streamgauge.config import Cell
from streamgauge.records.comparison import RATE
from streamgauge.records.measurement import Window
from streamgauge.records.trial import WINDOWS, MeasuredWindow
from streamgauge.results.report.run_records import Records
from tests.measure.benches import Bench, write_bench
from tests.measure.killed import job_of, kill, run_again

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


def test_a_cell_without_a_rate_costs_the_others_of_its_process_no_latency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiments = [{"name": name, "target_percent": 0, "seed": seed} for seed, name in enumerate("ef")]
    systems = [{"name": "a", **KNOWN}]
    plan = PLAN | {"processes": 1, "blocks": 5, "ratio_error": 0.9}
    bench = write_bench(tmp_path, search=plan, latency=LATENCY, systems=systems, experiments=experiments)
    log, measured = RunLog(bench.store.run("r")), latency.run_ready

    def run_ready(cell_run: CellRun, *given: Any) -> Any:
        if cell_run.cell.experiment == "e":
            raise UserError("e.all.a has no rate")
        return measured(cell_run, *given)

    monkeypatch.setattr(latency, "run_ready", run_ready)
    with pytest.raises(UserError, match=r"the first: .*e\.all\.a has no rate"):
        turns.run(bench.benchmark, bench.store, log, bench.benchmark.all_cells())
    states = {one.experiment: log.latest("latency", **one.model_dump()) for one in bench.benchmark.all_cells()}
    assert {name: one and one.state for name, one in states.items()} == {"e": "failed", "f": "done"}


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


@pytest.mark.prove
def test_a_job_that_is_killed_in_a_block_leaves_one_set_of_results(tmp_path: Path) -> None:
    """SIGKILL in the third block: the job that follows has a fresh process, and measures that block anew."""
    experiments = [{"name": name, "target_percent": 0, "seed": seed} for seed, name in enumerate("ef")]
    plan = PLAN | {"processes": 1, "blocks": 5, "ratio_error": 0.9, "window_seconds": 0.2}
    bench = write_bench(
        tmp_path, search=plan, latency={"fractions": [0.5], "seconds": 1}, systems=[{"name": "a", **KNOWN}],
        experiments=experiments,
    )  # fmt: skip
    log, cells = RunLog(bench.store.run("r")), bench.benchmark.all_cells()
    for one in bench.benchmark.experiments:
        with log.stage("validate", {"experiment": one.name}):
            pass

    def pairs() -> list[Window]:
        logs = [log.path / "cells" / one.name / WINDOWS for one in cells]
        windows = [line.window for path in logs if path.exists() for line in MeasuredWindow.read_log(path)]
        return [one for one in windows if one.purpose == "pair"]

    command = job_of(bench, "turns")
    kill(bench, command, lambda: len(pairs()) >= 9)
    assert 9 <= len(before := pairs()) < 12
    run_again(bench, command)
    blocks = Counter((one.block, one.life) for one in pairs())
    assert blocks == {(0, 1): 4, (1, 1): 4, (2, 1): len(before) - 8, (3, 2): 4, (4, 2): 4, (5, 2): 4}
    [compared] = search_of(log.path / "cells" / cells[1].name).compared
    assert (compared.blocks, compared.processes) == (5, 1)
    figures = [(one.experiment, one.metric) for one in results.read(log.path)]
    assert sorted(set(figures)) == sorted(figures)
    assert {("e", RATE), ("f", RATE)} < set(figures)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("lasts", "its process does not last from one run to the next"),
        ("rate", "f has no rate that counts"),
        ("run", "the run in turns is invalid: a queue overflowed"),
        ("answers", "too few blocks have answers enough"),
    ],
)
def test_latencies_that_are_not_compared_have_the_reason_and_their_file_has_one_line(
    tmp_path: Path, fault: str, reason: str
) -> None:
    experiments = [{"name": name, "target_percent": 0, "seed": seed} for seed, name in enumerate("ef")]
    bench = write_bench(tmp_path, search=PLAN, latency=LATENCY | {"blocks": 5}, experiments=experiments)
    cells, run = bench.benchmark.all_cells(), bench.store.run("r")
    group = [CellRun(bench.benchmark, bench.store, one, run) for one in cells]
    for one in group:
        one.directory.mkdir(parents=True)
        rate = None if (fault, one.cell.experiment) == ("rate", "f") else 9000.0
        (one.directory / "latency-turns.jsonl").write_text("{}\n")  # of an attempt that was killed
        SearchAnswer(outcome="found", sustainable_rate_events_per_s=rate).write(one.directory / "search.json")
    invalid = "a queue overflowed" if fault == "run" else None
    trial = SimpleNamespace(observation=SimpleNamespace(invalid=invalid), spans=())
    capabilities = SimpleNamespace(lasts=fault != "lasts")
    ready: Any = SimpleNamespace(cells=cells, capabilities=capabilities, paced=lambda *_, **__: trial)
    for _ in range(2):
        shared_latency.measure(ready, group, 1)
    compared = json.loads((group[1].directory / "search.json").read_text())["compared"]
    assert [(one["metric"], one["ratio"], one["reason"]) for one in compared] == [
        ("p50", None, reason), ("p99", None, reason)
    ]  # fmt: skip
    turned = group[1].directory / "latency-turns.jsonl"
    assert (len(read_jsonl(turned)) if turned.exists() else 0) == (fault in ("run", "answers"))
