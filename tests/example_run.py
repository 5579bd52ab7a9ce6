"""Hand-written records of one run, as the stages leave them, for tests of the page."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from streamgauge.base.jsonl import append_json, write_json
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, parse
from streamgauge.records.driver import DriverFigures
from streamgauge.streams.keys import events_key, profile_key, stream_key
from tests.example_search import LOSS, System, compared, recovery, search, windows

S = 10**9
DAY0 = 1_357_016_400 * S  # 2013-01-01T05:00:00Z
RUN = "example"


def benchmark(source: Path, **more: Any) -> Benchmark:
    source.write_text("time,key\n1,a\n")
    return parse(
        Benchmark,
        {
            "name": "flights",
            "description": "Departures <New York> & what became of them",
            "source": {"files": str(source), "time": {"column": "time", "unit": "s"}},
            "experiments": [
                {"name": "ordered", "target_percent": 0},
                {"name": "late20", "target_percent": 20, "delay": {"min": "1s", "max": "2h"}},
                {"name": "late99", "target_percent": 99, "delay": {"max": "2h"}},
            ],
            **more,
        },
        "test",
    )


def bins(low: float, high: float, number: int, total: int, centre: float) -> list[list[int]]:
    """Log-spaced [low, high, count] in ns with a hump."""
    edges = [low * (high / low) ** (i / number) for i in range(number + 1)]
    weights = [math.exp(-((i / number - centre) ** 2) / 0.03) for i in range(number)]
    return [
        [round(edges[i] * S), round(edges[i + 1] * S), round(total * w / sum(weights))] for i, w in enumerate(weights)
    ]


def quantiles(high_s: int) -> dict[str, int]:
    return {"min": S, "p50": high_s * S // 4, "p90": high_s * S // 2, "p99": high_s * S * 9 // 10, "max": high_s * S,
            "mean": high_s * S // 3}  # fmt: skip


HINT = {
    "kind": "ahead", "events": 1, "lines": [812], "files": [], "without": 4_950, "part": None,
    "text": "1 event (line 812) is ahead, by 120 min, and makes 153 later ones late; without it 4,950 of 26,482 are "
            "out of order",
}  # fmt: skip


def part(name: str | None, events: int, late: int, behind_s: int, idle_s: int) -> dict[str, Any]:
    return {
        "part": name, "events": events, "out_of_order": late, "out_of_order_in_all": 2 * late,
        "delay": quantiles(7200), "watermark_curve": [[0, late]],
        "event_time": {"min": DAY0, "max": DAY0 + 31 * 86400 * S}, "behind": {**quantiles(behind_s), "min": 0},
        "longest_idle": idle_s * S, "idle_spells": idle_s // 3600, "overtaken": late,
    }  # fmt: skip


BY_PART = {
    "column": "origin", "idle": 60 * S, "out_of_order": 1_450,
    "bursts": {"min": 1, "p50": 2, "p90": 5, "p99": 9, "max": 20, "mean": 2.5},
    "parts": [part("EWR", 9_893, 700, 600, 18_000), part("JFK", 9_161, 650, 900, 21_600), part(None, 7_429, 1, 60, 0)],
    "hints": [],
}  # fmt: skip


def profile() -> dict[str, Any]:
    events = 26_483
    histogram = bins(60, 7200, 30, 5_103, 0.6)
    curve, late = [[0, 5_103]], 5_103
    for _, high, here in histogram:
        late = max(0, late - here)
        curve.append([high, late])
    counts = [round(30 + 25 * math.sin(h / 24 * 2 * math.pi)) for h in range(31 * 24)]
    return {
        "version": 1, "events": events, "tick": "ns", "out_of_order": 5_103, "quarantined": 2,
        "adjacent_descents": 4_120,
        "runs": 4_121, "inversions": None, "distance": None, "interleaved": None,
        "delay": quantiles(7200), "delay_histogram": histogram, "watermark_curve": curve,
        "frequency": {"bin_ticks": 3600 * S, "start": DAY0, "counts": counts, "mean_per_s": 0.0099,
                      "peak_per_s": 0.0153, "dispersion": 1.83},
        "event_time": {"min": DAY0, "max": DAY0 + 31 * 86400 * S},
        "enough_delay": {"1 %": 5400 * S, "0.1 %": 7000 * S, "none": 7200 * S},
        "in_file": {"events": events, "out_of_order": 5_103, "hints": [HINT]},
        "recorded_delay": {**quantiles(7200), "min": -43 * 60 * S, "negative": 15_322, "missing": 521},
        "by_part": BY_PART,
    }  # fmt: skip


def stream(target_percent: int) -> dict[str, Any]:
    events = 26_483
    wanted = round(events * target_percent / 100)
    none: dict[str, Any] = {**dict.fromkeys(quantiles(1)), "histogram": []}
    some = {
        "drawn_delay": {**quantiles(7200), "histogram": bins(1, 7200, 30, wanted, 0.9)},
        "observed_delay": {**quantiles(6800), "histogram": bins(1, 6800, 30, wanted, 0.75)},
    }
    return {
        "events_key": "e", "columns": {}, "arrival": False, "target_percent": float(target_percent), "quarantined": 0,
        "aimed_out_of_order": wanted, "selection": {"bin": -1, "last_seq": -1}, "delay_table": [S, 7200 * S],
        "events": events, "source_out_of_order": 0, "target_out_of_order": wanted, "achieved_out_of_order": wanted,
        "newly_delayed": wanted, "feasible_max": 25_119, "infeasible": False,
        "sha256": f"{target_percent:02d}c0ffee" * 8,
        "tick": "ns", "seed": 42, "delay_min": S, "delay_max": 7200 * S, "files": ["part-0.parquet"], "csv_files": [],
        **(some if wanted else {"drawn_delay": none, "observed_delay": none}),
    }  # fmt: skip


class Recorder:
    """Writes the records of a run as stages would, second by second."""

    def __init__(self, store: Store, made: Benchmark) -> None:
        self.store, self.benchmark = store, made
        self.run = store.run(RUN)
        self._clock = 0

    def stage(self, stage: str, state: str = "done", seconds: float = 3.0, *, error: str | None = None,
              outcome: dict[str, Any] | None = None, **scope: str) -> None:  # fmt: skip
        base = {"version": 1, "stage": stage, "scope": scope, "attempt": f"a{self._clock}"}
        file = self.run / "stages.jsonl"
        append_json(file, {**base, "state": "started", "at": self._now()})
        self._clock += round(seconds)
        if state != "started":
            environment = {
                "machine": {"cpu": "Example CPU", "cores": 2, "memory_gib": 7.6},
                "software": {"spark": "4.3.0", "python": "3.11"},
            }
            append_json(file, {**base, "state": state, "at": self._now(), "seconds": seconds, "error": error,
                               "outcome": outcome or {}, "environment": environment})  # fmt: skip

    def artifact(self, kind: str, key: str, manifest: dict[str, Any], **files: Any) -> dict[str, Any]:
        """Publishes an artifact; gives the outcome that its stage records."""
        with self.store.building(kind, key) as build:
            build.manifest |= manifest
            for name, value in files.items():
                write_json(build.path / f"{name}.json", value)
        return {"artifact": kind, "key": key, "reused": False}

    def validation(self, experiment: str, checks: list[dict[str, Any]]) -> dict[str, Any]:
        """Result and Data Docs beside the page, as the stage leaves them."""
        place = self.run / f"validation-{experiment}"
        (place / "docs").mkdir(parents=True)
        (place / "docs" / "index.html").write_text("<title>Data Docs</title>")
        success = all(check["success"] for check in checks)
        record = {"version": 1, "experiment": experiment, "success": success, "expectations": checks, "facts": None}
        write_json(place / "result.json", record)
        return {"artifact": "validation", "key": experiment, "reused": False}

    def _now(self) -> str:
        return f"2026-05-04T10:{self._clock // 60:02d}:{self._clock % 60:02d}.000+00:00"


def record_example(store: Store, made: Benchmark) -> Recorder:
    """Run in which one experiment passes, one fails its validation, and one is infeasible."""
    r = Recorder(store, made)
    ordered, late20, late99 = made.experiments
    r.stage("ingest", seconds=9.1, outcome=r.artifact("events", events_key(store, made), {"rows": 26_483}))
    r.stage("analyze", seconds=5.4, outcome=r.artifact("profile", profile_key(store, made), {}, profile=profile()))
    for experiment in (ordered, late20):
        manifest = stream(round(experiment.target_percent or 0))
        made_stream = r.artifact("stream", stream_key(store, made, experiment), manifest)
        r.stage("generate", seconds=7.0, experiment=experiment.name, outcome=made_stream)
    r.stage("generate", "failed", 6.0, experiment=late99.name,
            error="target_percent: found 99, this seed's bound is 94.85 <b>%</b>;\n"
                  " use on_infeasible: closest")  # fmt: skip
    checks = [
        {"name": "no_row_lost", "suite": "stream_facts", "note": "As many rows", "success": True,
         "observed": {"rows": 26_483}},
        {"name": "sorted", "suite": "stream_facts", "note": "By ingestion time", "success": True,
         "observed": {"descents": 0}},
    ]  # fmt: skip
    r.stage("validate", seconds=11.0, experiment=ordered.name, outcome=r.validation(ordered.name, checks))
    broken = [checks[0], {**checks[1], "success": False, "observed": {"descents <script>": 3}}]
    r.validation(late20.name, broken)
    r.stage("validate", "failed", 10.0, experiment=late20.name, error="1 of 2 expectations failed: sorted (3 descents)")
    return r


FRACTIONS = (0.5, 0.8, 0.9, 1.0)


def system(nth: int) -> System:
    """The nth cell's: with RocksDB two processes under a cap of 30 000 rows a batch, else one that the age limits."""
    worse = 1 + nth
    if nth % 2 == 0:
        return System(batch_cost_s=0.45 * worse, row_cost_s=1e-5 * worse, cap_rows=30_000, factors=(0.98, 1 / 0.98))
    return System(batch_cost_s=1.0, row_cost_s=2.25e-5 * worse)


def record_cells(r: Recorder) -> None:
    """A Spark of two state stores on two streams; the last cell's latency is wrong at the full rate."""
    for nth, cell in enumerate(r.benchmark.all_cells()):
        scope = cell.model_dump()
        if cell.experiment == "late99":
            continue
        place = r.run / "cells" / cell.name
        place.mkdir(parents=True)
        of = system(nth)
        lines = windows(of)
        for one in lines:
            append_json(place / "windows.jsonl", one)
        for number, (purpose, part) in enumerate((("below", 0.9), ("above", 1.1)), len(lines) + 1):
            one = trial(number, purpose, part * of.rate, of.rate)
            append_json(place / "trials.jsonl", one)
        more = {"lost_at_own_speed": asdict(LOSS)}
        if cell.experiment == "late20" and cell.system == "rocksdb":
            more |= compared(cell, "ordered", 0.93, 0.02)
        write_json(place / "search.json", search(of, len(lines)) | more)
        r.stage("search", seconds=60, outcome={"artifact": "search"}, **scope)
        runs = [latency(fraction, of.rate, wrong=nth == 3 and fraction == 1) for fraction in FRACTIONS]
        if nth == 2:
            runs[-1] |= {"outcome": "inconclusive", "reason": "age grows by +0.050 s/s: it still settles"}
        write_json(place / "latency.json", runs)
        for fraction in FRACTIONS:
            age = of.batch_cost_s / (1 - of.row_cost_s * fraction * of.rate)
            run = {"fraction": fraction, "common": False, **trial(0, "", fraction * of.rate, of.rate, age)}
            append_json(place / "latency-trials.jsonl", run)
        r.stage("latency", seconds=40, outcome={"artifact": "latency"}, **scope)


def trial(number: int, purpose: str, rate: float, capacity: float, age_s: float = 0.3) -> dict[str, Any]:
    """A proof trial, or without a purpose a trial that began with empty queues."""
    return {**recovery(number, purpose, rate, capacity, age_s),
            "check": {"wrong": None, "expected_late": 42, "reported_late": 40, "late_counted": "groups"},
            "details": details(min(rate, capacity))}  # fmt: skip


SPLIT = {"disorder": 2e6, "queue_wait": 50e6, "watermark_hold": 100e6, "micro_batch": 90e6, "commit": 8e6}


def summary(p99: int) -> dict[str, Any]:
    """Count and quantiles of a latency or of a slip, ns."""
    return {"count": 100, "mean": 1.0, **dict.fromkeys(("p50", "p90", "p95", "p99", "p99.9", "max"), p99)}


DRIVER: DriverFigures = {
    "attempt": "a", "state": "stopped", "hold": False, "behind_s": 0.0, "failure": None, "ready": True,
    "start_wall_ns": 1000 * S, "stream": 0, "latest": 0, "soon": 0, "clock_step_ns": 0,
    "slip_ns": {"p50": 0, "p99": 250_000, "max": 300_000}, "offered": [1], "planned": [1], "committed": [1],
    "backlog": 0, "age_s": 0.0, "overflow": False, "uncommitted": False, "finished": True, "capacity_rows": 1000,
    "batches": 20, "plans_after_end": 0, "loops": 1, "lap_rows": [1], "out_of_order": 0, "ids": {}, "round": 0,
    "memory_rows": 1000, "wall_ns": 1020 * S, "partitions": 1, "stream_seconds_per_second": 3600.0,
    "cpu_seconds": 1.25, "memory_bytes": 150 * 2**20, "peak_memory_bytes": 200 * 2**20,
}  # fmt: skip


def details(rate: float) -> dict[str, Any]:
    """Figures of driver and system for 20 s of micro-batches of 1 s, the last one without rows."""
    batches = [
        {"at": 1000 + at, "batch_id": at, "rows": round(rate) * (at < 20), "duration_ms": 700 + 10 * (at % 7),
         "state_rows": 100 * at, "state_bytes": at * 2**20, "dropped": 2, "ends": [{"0": at}], "watermark_ms": at}
        for at in range(21)
    ]  # fmt: skip
    epochs = [
        {"epoch": at, "at_s": at + 0.7, "rows": 100, "latency_split_ns": {**SPLIT, "queue_wait": 50e6 + at * 1e6},
         "steady": True, "negative": 0, "least_ns": 0, "checksum": at, "clock_offset_ns": None, "batch": None,
         "event_latency_ns": summary(10**8), "processing_latency_ns": summary(10**8)} for at in range(20)
    ]  # fmt: skip
    return {
        "emitted": 2000, "epochs": epochs, "latency_split_ns": dict(SPLIT), "clock_offset_ns": [[-1_500_000, 20_000]],
        "system_clock_offset_ns": [250_000, 30_000],
        "slip_ns": summary(250_000),
        "system": {"batches": batches, "cpu_seconds": 19.0, "rss_bytes": 900 * 2**20, "gc_seconds": 0.4},
        "drivers": [dict(DRIVER)],
    }  # fmt: skip


def latency(fraction: float, rate: float, *, wrong: bool) -> dict[str, Any]:
    p50 = 120 / (1.15 - fraction)
    event = {
        "p50_ms": p50,
        "p90_ms": 2 * p50,
        "p99_ms": 3 * p50,
        "p999_ms": 4.5 * p50,
        "max_ms": 5 * p50,
        "count": 9_000,
    }
    return {"version": 1, "fraction": fraction, "rate_events_per_s": fraction * rate, "valid": True,
            "outcome": "sustainable",
            "reason": "age grows by +0.001 s/s, at most 0.03",
            "event_latency": event, "processing_latency": {k: v / 2 if k != "count" else v for k, v in event.items()},
            "over_time": [[at, p50 * (1 + 0.1 * (at % 3)), 3 * p50 * (1 + 0.1 * (at % 2))] for at in range(20)],
            "late_events": 0, "stream_seconds_per_second": 4200.0,
            "correct": not wrong, "late_drops_expected": 42, "late_drops_reported": 42}  # fmt: skip


CELLS = {
    "latency": {"fractions": list(FRACTIONS)},
    "workloads": [{"name": "sum", "query": "windowed_aggregation", "key": "key"}],
    "systems": [{"name": "rocksdb"}, {"name": "hdfs"}],
}
