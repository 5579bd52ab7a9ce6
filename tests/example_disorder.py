"""Hand-written records of a run in turns: three degrees and two delays, two engines, two rounds each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamgauge.base.jsonl import append_json, write_json
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark
from streamgauge.streams.keys import stream_key
from tests.example_run import Recorder, benchmark, latency, stream, trial
from tests.example_search import System, compared, search

COMMON = 10_000.0
#: events/s of each round, by experiment and system; the second round met a machine half as fast
ROUNDS = {
    ("ordered", "micro"): (40_000, 20_000), ("late20", "micro"): (36_000, 17_000),
    ("late50", "micro"): (30_000, 14_000), ("near20", "micro"): (38_000, 19_000),
    ("ordered", "rows"): (80_000, 40_000), ("late20", "rows"): (60_000, 31_000),
    ("late50", "rows"): (40_000, 20_000), ("near20", "rows"): (64_000, 32_000),
}  # fmt: skip
#: part of the rate in order that is kept, from windows in turns
KEPT = {
    ("late20", "micro"): 0.9, ("late50", "micro"): 0.75, ("near20", "micro"): 0.99,
    ("late20", "rows"): 0.8, ("late50", "rows"): 0.5, ("near20", "rows"): 0.8,
}  # fmt: skip
LOST = {"ordered": 0, "late20": 300, "late50": 900, "near20": 0}
SEMANTICS = {
    "takes": "one by one", "queues": "is the least", "counts": "as rows",
    "late": "when its window has ended", "watermark": "with every micro-batch", "emits": "at the end of its batch",
    "final": "when its batch is committed", "state": "heap", "revises": False,
}  # fmt: skip


def made_benchmark(source: Path) -> Benchmark:
    delay = {"max": "2h"}
    return benchmark(
        source,
        experiments=[
            {"name": "ordered", "target_percent": 0, "delay": delay},
            {"name": "late20", "target_percent": 20, "delay": delay},
            {"name": "late50", "target_percent": 50, "delay": delay},
            {"name": "near20", "target_percent": 20, "delay": {"max": "15m"}},
        ],
        workloads=[{"name": "sum", "query": "windowed_aggregation", "key": "key", "watermark": "30m"},
                   {"name": "link", "query": "discard"}],
        systems=[{"name": "micro"}, {"name": "rows", "engine": "flink"}],
        cells=[{"experiment": e, "workload": "sum", "system": s} for e, s in ROUNDS]
        + [{"experiment": "ordered", "workload": "link", "system": "micro"}],
        search={"processes": 2, "in_turns": True},
        latency={"fractions": [0.8], "rates": [COMMON]},
    )  # fmt: skip


def record_degrees(store: Store, made: Benchmark) -> Recorder:
    r = Recorder(store, made)
    for experiment in made.experiments:
        manifest = stream(round(experiment.target_percent or 0))
        outcome = r.artifact("stream", stream_key(store, made, experiment), manifest)
        r.stage("generate", outcome=outcome, experiment=experiment.name)
        r.stage("validate", experiment=experiment.name)
    for cell in made.all_cells():
        place = r.run / "cells" / cell.name
        place.mkdir(parents=True)
        first, second = ROUNDS[cell.experiment, cell.system] if cell.workload == "sum" else (90_000, 45_000)
        of = System(1.0, 0.9 / (first * second) ** 0.5, factors=((second / first) ** 0.5, (first / second) ** 0.5))
        more = {"semantics": SEMANTICS, "software": {"spark": "4.3.0"}}
        if cell.experiment != "ordered":
            more |= compared(cell, "ordered", KEPT[cell.experiment, cell.system], 0.03)
        write_json(place / "search.json", search(of, 8) | more)
        r.stage("search", **cell.model_dump())
        runs = list[dict[str, Any]]()
        for fraction, common in ((0.8, False), (COMMON / of.rate, True)):
            run = latency(fraction, of.rate, wrong=False) | {"common": common, "offered": 10_000}
            run |= {"late_events": LOST[cell.experiment], "late_drops_counted_in": "rows"}
            run |= {"system_cpu_us_per_event": 2.5 if cell.system == "micro" else 0.9}
            runs.append(run)
            line = trial(0, "", fraction * of.rate, of.rate) | {"fraction": fraction, "common": common}
            if cell.system != "micro":  # the continuous engine tells no size of its state
                line["details"] = {"system": {"stretches": []}}
            append_json(place / "latency-trials.jsonl", line)
        write_json(place / "latency.json", runs)
        r.stage("latency", **cell.model_dump())
    return r
