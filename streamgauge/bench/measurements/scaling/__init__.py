"""The measurement `scaling`: what a system carries on parts of the machine, and how many cores a rate demands."""

from __future__ import annotations

from streamgauge.bench.measurements import MeasurementPackage

SCALING = MeasurementPackage(
    does="measures the rate on parts of the machine in turns: efficiency, the scalability law, cores and money for it",
    section=f"{__name__}.section:Scaling",
    measure=f"{__name__}.stage:measure",
    blocks=f"{__name__}.page:blocks",
    records={"scaling": f"{__name__}.record:ScalingRun"},
)
