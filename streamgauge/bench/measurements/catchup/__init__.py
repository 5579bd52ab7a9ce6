"""The measurement `catchup`: how long a system needs after a standstill, while events go on."""

from __future__ import annotations

from streamgauge.bench.measurements import MeasurementPackage

CATCHUP = MeasurementPackage(
    does="begins with a backlog while events go on: how long until it is live, and how much it takes meanwhile",
    section=f"{__name__}.section:Catchup",
    measure=f"{__name__}.stage:measure",
    blocks=f"{__name__}.page:blocks",
    records={"catchup": f"{__name__}.record:CatchupRun"},
)
