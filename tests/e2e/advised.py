"""A stream of which an advice knows the loss, and a trial of it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq

from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.driver.replay import load_stream, offered_rows
from streamgauge.bench.driver.system import Adapter
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.bench.engines.declared import late_rules
from streamgauge.bench.oracle.check import Check, check
from streamgauge.bench.workloads import Spec
from streamgauge.config import Replay, Workload
from streamgauge.records.advice import ByEngine, Question
from streamgauge.streams.advice.engines import Arrivals, Asked, by_engine
from tests.driver.conftest import COLUMNS, stream_table

#: events a second of the stream, and seconds
RATE, SECONDS = 400, 17
_S = 10**9


def stream(place: Path) -> Path:
    """An event each 2.5 ms. Up to 0.9 s late is one in ten, and so is, in the last 4 s, one of the first 3 s.

    With a delay of a second, an engine loses the latter alone, although its watermark comes 9 s late.
    """
    draw = Random(11)
    arrivals = [number * _S // RATE for number in range(RATE * SECONDS)]
    times = []
    for at in arrivals:
        drawn, late = draw.random(), at
        if drawn < 0.1:
            late = max(0, at - draw.randrange(9 * _S // 10))
        elif drawn < 0.2 and at >= (SECONDS - 4) * _S:
            late = draw.randrange(3 * _S)
        times.append(late)
    # each event is a group of its own, so that an engine which counts groups counts events
    pq.write_table(stream_table(times, arrivals), place / "part-0.parquet")
    (place / "manifest.json").write_text(json.dumps({"files": ["part-0.parquet"], "tick": "ns", "columns": COLUMNS}))
    return place


def advised(place: Path, engine: str, delay_s: int) -> ByEngine:
    """Loss that the advice tells of an engine, for windows of a second."""
    rows = pq.read_table(place / "part-0.parquet")
    event_us, arrival_us = (rows[name].to_numpy() // 1000 for name in ("event_time", "ingestion_time"))
    asked = Asked(Question(answers="tumbling", length=_S, slide=_S), delay_s * _S, "ns")
    (found,) = by_engine([one for one in late_rules() if one.title == engine], asked, [Arrivals(event_us, arrival_us)])
    return found


def dropped(system: Adapter, place: Path, work: Path, delay_s: int, rate: float) -> Check:
    """Check of a trial at that rate: the engine's own count, and answers that lack what it has dropped alone."""
    given = {"name": "w", "query": "windowed_aggregation", "key": "flight", "value": "flight", "window": "1s"}
    workload = Workload.model_validate(given | {"watermark": f"{delay_s}s"})
    work.mkdir()
    with Fleet(place, Replay(), tick="ns", columns=COLUMNS) as fleet:
        bounds = Bounds(max_slip_s=60, max_clock_offset_s=20, drain_s=120)
        run = run_trial(system, fleet, TrialRequest(workload, work, rate, RATE * SECONDS / rate, bounds))
    assert run.observation.invalid is None
    assert run.observation.taken == RATE * SECONDS
    table = load_stream([place / "part-0.parquet"], "ns", COLUMNS, line=False, max_memory_mb=64, densify=1)
    offered = offered_rows(table, [[rows - 1 for rows in driver["offered"]] for driver in run.details["drivers"]])
    figures: Any = run.details["system"]
    found = check(offered, figures, run.details["epochs"], Spec.of(workload, COLUMNS), run.details["rules"])
    assert (found.wrong, found.watermarks_checked) == (None, True)
    return found


def compare(system: Adapter, engine: str, folder: Path) -> None:
    """Compares advice and trial, where each pace gives the same loss, and where the pace decides."""
    place = folder / "stream"
    place.mkdir()
    stream(place)
    hurried = advised(place, engine, 0)
    assert hurried.loss.between is not None
    least, most = hurried.loss.between
    assert least <= (dropped(system, place, folder / "hurried", 0, 10 * RATE).reported_late or 0) <= most
    exact = advised(place, engine, 1).loss
    assert exact.between == (0, exact.events)
    assert exact.events > 100
    assert dropped(system, place, folder / "own", 1, RATE).reported_late == exact.events
