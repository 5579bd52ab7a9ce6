"""The records of a run's figures, `results.jsonl`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from pydantic import with_config

from streamgauge.base.environment import Machine, Software, environment
from streamgauge.base.words import shown
from streamgauge.records.claim import mark_of
from streamgauge.records.record import VERSION, WITH_CONSTANTS


@with_config(WITH_CONSTANTS)
@dataclass(frozen=True)
class Result:
    """A measured figure. What it measures and the machine identify its series; software is an attribute."""

    benchmark: str
    experiment: str
    workload: str
    system: str
    mode: str  # streaming, batch; quick: streaming at a first look
    metric: str  # name of the figure, such as event_latency_ms_p99_at_50pct
    unit: str
    value: float | None
    run_id: str
    config_hash: str
    low: float | None = None
    high: float | None = None
    samples: int = 1
    valid: bool = True  # False: void, with the reason
    reason: str = ""
    claim: str = ""  # of a rate: proven, at least, estimated …; of a latency in doubt: not settled, not sustained
    replaces: bool = False  # its stage may run again: it stands instead of what the run said of this before
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    machine: Machine = field(default_factory=lambda: environment().machine)
    software: Software = field(default_factory=lambda: environment().software)
    version: Literal[1] = VERSION

    @property
    def is_sound(self) -> bool:
        return self.valid and self.value is not None

    @property
    def text(self) -> str:
        """The value with its claim's mark, its unit and interval, and why it is void; a dash without one, and why."""
        void = "" if self.valid else f"  void: {self.reason}"
        if self.value is None:
            return f"—{void or f'  {self.reason}'}".rstrip()
        between = "" if self.low is None or self.high is None else f" ({shown(self.low)} to {shown(self.high)})"
        return f"{mark_of(self.claim)} {shown(self.value)} {self.unit}{between}{void}".lstrip()
