"""The measurement `search`: the highest rate that a system sustains."""

from __future__ import annotations

from streamgauge.bench.measurements import MeasurementPackage

SEARCH = MeasurementPackage(
    does="finds the highest rate that the system sustains",
    section=f"{__name__}.section:Search",
    measure=f"{__name__}.stage:measure",
    blocks=f"{__name__}.page:blocks",
    records={
        "search": f"{__name__}.record:SearchAnswer",
        "windows": "streamgauge.records.trial:MeasuredWindow",
        "trials": "streamgauge.records.trial:MeasuredTrial",
    },
    needs=("stream", "validation"),
    in_turns=True,
)
