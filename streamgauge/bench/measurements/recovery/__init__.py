"""The measurement `recovery`: how a system goes on after a fault, and whether its answers are whole then."""

from __future__ import annotations

from streamgauge.bench.measurements import MeasurementPackage

RECOVERY = MeasurementPackage(
    does="kills the system, ends a worker, cuts its link or rescales it in a trial: how long until it is back",
    section=f"{__name__}.section:Recovery",
    measure=f"{__name__}.stage:measure",
    blocks=f"{__name__}.page:blocks",
    records={"recovery": f"{__name__}.record:RecoveryRun"},
)
