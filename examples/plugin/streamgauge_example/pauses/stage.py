"""Measures a cell: one trial, and the times of its hand-overs."""

from __future__ import annotations

from itertools import pairwise

from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measure.measured import software_of
from streamgauge_example.pauses import NAME
from streamgauge_example.pauses.record import Pause
from streamgauge_example.pauses.section import Pauses


def measure(cell_run: CellRun, section: Pauses) -> dict[str, object]:
    """Measures; returns facts for the log of stages."""
    with cell_run.ready(section.seconds) as (bench, token):
        measured = bench.trial(section.rate, section.seconds, token=token)
    seen, software = measured.observation, software_of(measured.details)
    at_s = [sample.at_s for sample in seen.samples]
    longest_s = max((after - before for before, after in pairwise(at_s)), default=None)
    pause = Pause(rate_events_per_s=section.rate, longest_pause_s=longest_s, void=seen.invalid or "")
    pause.write(cell_run.directory / f"{NAME}.json")
    cell_run.keep("longest_pause_s", "s", longest_s, samples=len(at_s), void=pause.void, software=software)
    return {"longest_pause_s": longest_s}
