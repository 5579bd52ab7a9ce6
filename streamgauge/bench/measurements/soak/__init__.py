"""The measurement `soak`: whether a system that carries a rate for long stays as it is."""

from __future__ import annotations

from streamgauge.bench.measurements import MeasurementPackage

SOAK = MeasurementPackage(
    does="carries a rate for long, and judges whether age, latency, state, memory, files and disk are level",
    section=f"{__name__}.section:Soak",
    measure=f"{__name__}.stage:measure",
    blocks=f"{__name__}.page:blocks",
    records={"soak": f"{__name__}.record:SoakRun"},
)
