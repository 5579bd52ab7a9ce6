"""The measurement `example_pauses`: the longest time in which a cell takes no event. A file for each of its roles."""

from __future__ import annotations

from streamgauge.bench.measurements import MeasurementPackage

NAME = "example_pauses"
PAUSES = MeasurementPackage(
    section=f"{__name__}.section:Pauses",
    measure=f"{__name__}.stage:measure",
    blocks=f"{__name__}.page:blocks",
    records={NAME: f"{__name__}.record:Pause"},
)
