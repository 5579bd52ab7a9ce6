"""Settings of the gate, which compares two commits of a repository, and what got slower in it on purpose."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import Field, RootModel, field_validator, model_validator

from streamgauge.base.errors import UserError
from streamgauge.base.field_types import Delay, Model, PositiveFloat
from streamgauge.base.units import Duration
from streamgauge.config import mistakes

Compared = Literal["speed", "cpu", "latency"]
#: what a gate may compare: metrics of a repetition; lower is better, except of the speed
GATE_SPEED = "speed_events_per_s"
GATE_CPU, GATE_LATENCY = "system_cpu_us_per_event", "processing_latency_ms_p50"
GATE_COMPARES: dict[Compared, str] = {"speed": GATE_SPEED, "cpu": GATE_CPU, "latency": GATE_LATENCY}
SlowerPercent = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]


class Gate(Model):
    """Settings of the gate: builds two commits, measures both in turns, and judges the newer one."""

    build: str | None = Field(
        default=None, description="shell command that builds a checkout, in its topmost folder; without it none does"
    )
    build_timeout: Delay = Field(default=Duration.parse("30min"), description="longest time of a build")
    system: str | None = Field(default=None, description="the system to compare; by default the only one of the file")
    answers: Literal["check", "skip"] = Field(
        default="check", description="check the answers of both, or skip that, which the verdict then says"
    )
    rate: PositiveFloat | None = Field(
        default=None,
        description="events/s at which answers are checked, and latency is measured; below what the slower one "
        "sustains; not needed if neither is done",
    )
    compare: tuple[Compared, ...] = Field(
        default=("cpu",),
        description="parts that are compared: cpu and speed (CPU time per event, and events/s, while events wait), and "
        "latency at the rate",
    )
    slower_percent: SlowerPercent = Field(
        default=5.0, description="slowdown that must not be merged; a smaller one may go either way"
    )
    minutes: PositiveFloat = Field(default=10.0, description="longest time of measuring, builds not included")
    warmup_seconds: PositiveFloat = Field(default=8.0, description="warm-up of each fresh process")
    seconds: PositiveFloat = Field(default=8.0, description="length of each measurement, in seconds")
    inconclusive: Literal["warn", "fail"] = Field(
        default="warn", description="an inconclusive verdict ends with exit code 0 (warn) or 2 (fail)"
    )
    accepted: str = Field(
        default="accepted.yaml", description="file of the repository that lists what is slower on purpose"
    )

    @field_validator("compare")
    @classmethod
    def _once(cls, compare: tuple[Compared, ...]) -> tuple[Compared, ...]:
        if not compare:
            raise ValueError(f"found none, allowed: {', '.join(GATE_COMPARES)}")
        return tuple(dict.fromkeys(compare))

    @model_validator(mode="after")
    def _has_a_rate(self) -> Self:
        if self.rate is None and (self.answers == "check" or "latency" in self.compare):
            raise ValueError("rate: this key is missing; answers and latency need it")
        return self

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(GATE_COMPARES[name] for name in self.compare)


class Accepted(Model):
    """A slowdown that is accepted, as the reason is worth it. Until that day the base counts as slower by so much."""

    slower_percent: SlowerPercent = Field(description="slowdown that is accepted")
    author: Annotated[str, Field(min_length=1)] = Field(description="who accepts it")
    reason: Annotated[str, Field(min_length=1)] = Field(description="why it is worth it")
    until: date = Field(description="last day on which it counts, such as 2027-01-31")
    cell: str | None = Field(default=None, description="experiment.workload for which it holds; by default all")
    compare: Compared | None = Field(default=None, description="what got slower: speed, cpu or latency; by default all")

    def holds_for(self, cell: str, metric: str) -> bool:
        return self.cell in (None, cell) and (self.compare is None or GATE_COMPARES[self.compare] == metric)


class _AcceptedFile(RootModel[tuple[Accepted, ...]]):
    """The whole file: a list."""


def accepted_in(file: Path) -> tuple[Accepted, ...]:
    """Reads what is accepted; nothing without that file. Raises UserError."""
    try:
        text = file.read_text(encoding="utf-8")
        raw = yaml.safe_load(text)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, yaml.YAMLError) as problem:  # ValueError: no UTF-8, or a date such as 2027-02-30
        raise UserError(f"{file}: cannot be read as YAML: {problem}") from None
    if not isinstance(raw or [], list):
        raise UserError(f"{file}: found {type(raw).__name__}, allowed: a list of accepted slowdowns")
    return mistakes.check(_AcceptedFile, raw or [], mistakes.in_file(str(file), text)).root
