"""The cost of a late stream in CPUs, from records of the measurement scaling: on the page, and in `runs show`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from streamgauge.bench.measurements.scaling.record import Checked, ScalingRun, disorder_in_cpus
from streamgauge.bench.measurements.scaling.section import Scaling
from streamgauge.bench.measurements.scaling.stage import carried_of, record_of
from streamgauge.bench.search.parts import Point
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import Cell
from streamgauge.results.report import cells_section
from streamgauge.results.report.blocks import Note
from streamgauge.results.report.run_records import Records
from tests.command import Call, run
from tests.measure.benches import CELL, Bench, write_bench
from tests.measure.scaled import point


def scaled(bench: Bench, cell: Cell, percent: float, *points: Sequence[Point]) -> ScalingRun:
    """Writes the record of a cell whose parts carry this."""
    parts = tuple(own[0].cpus for own in points)
    carried_by = [carried_of(own, own[0].cpus, parts) for own in points]
    made = record_of("p", Scaling(quotas=parts, demand=80.0, blocks=2), carried_by, 0.02)
    made = made.model_copy(update={"cell": cell, "target_percent": percent})
    place = bench.store.run("r") / "cells" / cell.name
    place.mkdir(parents=True, exist_ok=True)
    made.write(place / "scaling.json")
    return made


def test_page_and_runs_show_say_what_a_late_stream_costs_in_cpus(tmp_path: Path) -> None:
    streams = [{"name": "late", "target_percent": 20, "delay": {"max": "1s"}}, {"name": "e", "target_percent": 0}]
    bench = write_bench(tmp_path, experiments=streams, scaling={})
    late = CELL.model_copy(update={"experiment": "late"})
    ordered_run = scaled(bench, CELL, 0, point(0.5, 50, 51), point(1.0, 100, 102))
    late_run = scaled(bench, late, 20, point(0.5, 40, 41), point(1.0, 80, 82))
    [(name, cost)] = disorder_in_cpus([late_run, ordered_run]).items()
    assert (name, cost.against, cost.rate_events_per_s) == (late.name, "e", 80)
    assert cost.cpus == pytest.approx(0.99, abs=0.01)
    assert cost.of_against == pytest.approx(0.79, abs=0.01)
    said = r"of two processes, at 80 events/s it needs 0\.2 CPUs more than e \(0\.1\d* to 0\.2\d*\)"
    assert re.fullmatch(said, cost.sentence)
    shown = cells_section.section(Records(bench.benchmark, bench.store, "r"))
    notes = {part.title: [one.text for one in part.blocks if isinstance(one, Note)] for part in shown.parts}
    assert f"O{cost.sentence[1:]}." in notes["late × all × known"]
    assert not any(" CPUs more than " in text for text in notes["e × all × known"])
    with RunLog(bench.store.run("r")).stage("scaling", late.model_dump()):
        pass
    told = run(Call(["runs", "show", "r", "--artifacts", str(bench.store.root)]))
    assert f"{late.name}: {cost.sentence}" in told.out.splitlines()


def test_what_is_not_known_of_the_cpus_has_its_reason(tmp_path: Path) -> None:
    bench = write_bench(tmp_path)
    late = CELL.model_copy(update={"experiment": "late"})
    fast = scaled(bench, CELL, 0, point(0.5, 500, 510), point(1.0, 1000, 1020))
    slow = scaled(bench, late, 20, point(0.5, 40, 41), point(1.0, 80, 82))
    assert disorder_in_cpus([fast, slow])[late.name].sentence == (
        "what it costs in CPUs against e is not known: the parts carry no common rate: 41 to 80 events/s of the one, "
        "510 to 1,000 of the other"
    )
    wrong = Checked(rate_events_per_s=1, outcome="sustainable", correct=False)
    for bad in (slow.model_copy(update={"checked": wrong}), scaled(bench, late, 20, point(0.5, 40), point(1.0, 80))):
        assert disorder_in_cpus([fast, bad])[late.name].reason == (
            "answers were wrong, or a part has no rate in some block"
        )
    alike = disorder_in_cpus([fast, fast.model_copy(update={"cell": late})])[late.name]
    assert alike.sentence.startswith(
        "of two processes, at 714 events/s it needs no more CPUs than e that show: between -0.0"
    )
