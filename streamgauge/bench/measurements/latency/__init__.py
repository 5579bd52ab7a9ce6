"""The measurement `latency`: how late answers are at fractions of the sustainable rate."""

from __future__ import annotations

from streamgauge.bench.measurements import MeasurementPackage

LATENCY = MeasurementPackage(
    does="measures latency at fractions of that rate",
    section=f"{__name__}.section:Latency",
    measure=f"{__name__}.stage:measure",
    blocks=f"{__name__}.page:blocks",
    records={
        "latency": f"{__name__}.record:LatencyRun",
        "latency-trials": "streamgauge.records.trial:LatencyTrial",
        "latency-turns": "streamgauge.records.trial:TurnLatencies",
    },
    needs=("stream", "search"),
    in_turns=True,
)
