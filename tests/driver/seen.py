"""The observation of a trial, as a driver process tells it in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.base.histogram import Histogram
from streamgauge.records.driver import Observed, QueueSample
from tests.example_run import DRIVER


def observed(
    bodies: Mapping[int, Any], *, start_wall_ns: int, clock_step_ns: int = 0, samples: Sequence[QueueSample] = ()
) -> Observed:
    """bodies: of the reports, by epoch, sound or not."""
    return {
        **DRIVER, "clock_step_ns": clock_step_ns, "samples": list(samples), "clock": [], "final": None,
        "slip": Histogram().to_dict(), "start_wall_ns": start_wall_ns, "refused": None, "more": False,
        "reports": [{"epoch": epoch, "body": body} for epoch, body in bodies.items()],
    }  # fmt: skip
