"""Prints a line for each metric on standard error, for development."""

from __future__ import annotations

import sys
from typing import Any

from streamgauge.config import MetricsSink
from streamgauge.metrics.snapshot import Snapshot, iso


class ConsoleSink:
    name = "console"

    def __init__(self, settings: MetricsSink) -> None: ...

    def write(self, snapshot: Snapshot) -> None:
        title = f"metrics of {snapshot.pipeline} at {iso(snapshot.at_ns)}{' (final)' if snapshot.final else ''}"
        lines = [
            f"  {m.step}  {m.namespace}.{m.name}  attempted {_short(m.attempted)}  committed {_short(m.committed)}"
            for m in snapshot.metrics
        ]
        print("\n".join([title, *lines]), file=sys.stderr, flush=True)

    def close(self) -> None: ...


def _short(figures: dict[str, Any] | None) -> str:
    if figures is None:
        return "–"
    if len(values := {k: v for k, v in figures.items() if k != "timestamp_ns"}) == 1:
        return f"{values['value']:,}"
    return " ".join(f"{name} {value:,.6g}" for name, value in values.items() if value is not None)
