"""Settings of what is measured, and how: workloads, replay, release check, suite."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, PositiveInt, ValidationInfo, field_validator, model_validator

from streamgauge.base.field_types import Delay, Model, Name, Percent, PositiveFloat, Seed
from streamgauge.base.plugins import Parts
from streamgauge.base.units import Duration

#: functions with the signature of `recovery`
VERDICTS = Parts("verdicts", {"recovery": "streamgauge.bench.search.verdict:recovery"}, "function")


def _has_port(address: str) -> str:
    if not 0 < int(address.rpartition(":")[2]) < 2**16:
        raise ValueError(f"found {address}, allowed: a port from 1 to {2**16 - 1}")
    return address


#: queries that packages register; those of this project are in workloads/
_QUERIES = Parts("workloads", {})


class Workload(Model):
    """A query over one source: which columns are its key and value, which windows it uses."""

    name: Name = Field(description="name of the workload")
    query: str = Field(description="a query of the registry: see `streamgauge workloads`")
    key: str | None = Field(default=None, description="column of the source that the query groups by")
    value: str | None = Field(default=None, description="column of the source that the query aggregates")
    window: Delay = Field(default=Duration.parse("10s"), description="length of a window")
    slide: Delay | None = Field(default=None, description="step of a sliding window; without it windows tumble")
    watermark: Delay = Field(default=Duration(0), description="delay of the watermark behind the latest event time")
    mark: str | None = Field(
        default=None, description="queries of two kinds of events: the `value`, as text, of the second kind"
    )
    top: Annotated[int, Field(gt=0, le=1000)] = Field(
        default=10, description="query top_n: number of rows per key and window"
    )

    @property
    def own_code(self) -> str | None:
        """The package.module:name of a query that a package registers; None for one of this project."""
        return _QUERIES.outside(self.query)


class Promise(Model):
    """Loss that the answers of a workload may have; from it follows how long it shall wait for late events."""

    lost_percent: Annotated[Percent, Field(gt=0, lt=100)] | None = Field(
        default=None, description="largest percent of the events that may be lost; give it or windows_wrong_percent"
    )
    windows_wrong_percent: Annotated[Percent, Field(gt=0, lt=100)] | None = Field(
        default=None, description="largest percent of the windows, or of the sessions, that may stay wrong"
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.lost_percent is None) == (self.windows_wrong_percent is None):
            raise ValueError("give exactly one of lost_percent, windows_wrong_percent")
        return self


class Offered(Model):
    """Settings of a stream as processes of the driver offer it."""

    mode: Literal["constant", "time_map"] = Field(
        default="constant",
        description="constant: event i is offered at i/rate; time_map: at its ingestion time, sped up",
    )
    profile: Literal["constant", "steps", "sine", "burst", "source"] = Field(
        default="constant", description="mode constant: how the rate changes around its mean during a trial"
    )
    partitions: Annotated[int, Field(ge=1, le=1024)] = Field(
        default=1, description="number of queues, over all processes"
    )
    densify: Annotated[int, Field(ge=1)] = Field(
        default=1, description="interleaved copies of each event, under salted keys"
    )
    queue_seconds: PositiveFloat = Field(
        default=30.0, description="seconds of events that the queues hold before they overflow"
    )
    max_memory_mb: PositiveInt = Field(
        default=1024,
        description="MiB of memory of all driver processes together: half for the stream, half for the queues",
    )


class Replay(Offered):
    """Settings of how the driver offers a stream."""

    processes: Annotated[int, Field(ge=1, le=64)] = Field(default=1, description="number of driver processes")
    ids: tuple[str, ...] | None = Field(
        default=None,
        description="columns whose values are others in each trial, warm-up and loop of the stream, of type string or "
        "int64; by default a job's answer.key, where it names columns of the source and no time; [] for none",
    )
    cpus: tuple[int, ...] | None = Field(default=None, description="pin the driver to these CPUs")
    max_slip: Delay = Field(
        default=Duration.parse("100ms"),
        description="largest p99 of the driver's lag behind its schedule; above it a trial is invalid",
    )
    max_clock_offset: Delay = Field(
        default=Duration.parse("100ms"),
        description="largest offset between the clocks that stamp offers and emissions, error bound included; "
        "above it a trial is invalid",
    )
    remote: tuple[Annotated[str, Field(pattern=r"^[^\s:,]+:\d{1,5}$"), AfterValidator(_has_port)], ...] = Field(
        default=(),
        description="host:port of drivers started by hand, in the order of their --share; none: on this host",
    )
    token_variable: str | None = Field(
        default=None, description="the environment variable that holds the remote drivers' token"
    )
    cafile: str | None = Field(
        default=None, description="PEM file that remote drivers' certificates are checked against"
    )

    @model_validator(mode="after")
    def _here_or_there(self) -> Self:
        if self.remote and self.processes != 1:
            raise ValueError("give processes or remote, not both: every remote address is one process")
        return self

    @property
    def shares(self) -> int:
        """Number of driver processes, wherever they run."""
        return len(self.remote) or self.processes


RELEASE_RATE, RELEASE_CATCHUP = "sustainable_rate_events_per_s", "catchup_seconds"
#: what a release check may compare: metrics and their units; lower is better, except of the rate. Latency is
#: processing-time latency: that in event time is mostly how late the stream itself is, which no version changes.
#: Measurements without a metric are carried out once of each side: their figures stand beside, and only answers decide
RELEASE_COMPARES: dict[str, dict[str, str]] = {
    "rate": {RELEASE_RATE: "events/s"},
    "latency": {"processing_latency_ms_p50": "ms", "processing_latency_ms_p99": "ms"},
    "cpu": {"system_cpu_us_per_event": "us"},
    "catchup": {RELEASE_CATCHUP: "s"},
    "recovery": {},
    "soak": {},
    "scaling": {},
}
RELEASE_METRICS = {metric: unit for metrics in RELEASE_COMPARES.values() for metric, unit in metrics.items()}


class Release(Model):
    """Settings of a release check of two systems: answers first, then figures of fresh processes, in turns."""

    rate: PositiveFloat = Field(
        description="events/s at which latency, CPU and outputs are measured; below what the slower one sustains"
    )
    seconds: PositiveFloat = Field(default=8.0, description="length of each measurement, in seconds")
    warmup_seconds: PositiveFloat = Field(
        default=8.0, description="warm-up of each fresh process, before it is measured"
    )
    repetitions: Annotated[int, Field(ge=4, le=100)] = Field(
        default=4,
        description="rounds of baseline, candidate, baseline; of the rate, of baseline and candidate; each a fresh "
        "process",
    )
    reruns: Annotated[int, Field(ge=1, le=100)] = Field(default=4, description="further rounds for suspects")
    compare: tuple[str, ...] = Field(
        default=("latency", "cpu"),
        description="parts that are compared: latency, cpu, rate, catchup; the rate needs a ladder of each process, "
        "which takes minutes, and catchup the section of that name, whose backlog each process takes; recovery, soak "
        "and scaling: those sections are measured once of each side, and their figures stand beside",
    )
    tolerance: dict[str, Annotated[float, Field(gt=0, lt=1)]] = Field(
        default_factory=dict,
        description="metric -> smallest relative slowdown that must not ship, by default 0.1; metrics are those of "
        "what is compared, and where some are named, others are not judged",
        validate_default=True,
    )
    queries: tuple[str, ...] = Field(
        default=("all",), description="queries of the Nexmark suite: all, or some of q0 to q23"
    )
    events: Annotated[int, Field(ge=50)] = Field(default=5_000, description="number of events that those queries read")
    disorder_percent: Percent = Field(default=20.0, description="percent of these events that are out of order")
    seed: Seed = Field(default=1, description="seed of the events that the queries read")

    @field_validator("compare")
    @classmethod
    def _comparable(cls, compare: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in compare if name not in RELEASE_COMPARES]
        if unknown or not compare:
            allowed = ", ".join(RELEASE_COMPARES)
            raise ValueError(f"found {unknown[0] if unknown else 'none'!r}, allowed: {allowed}")
        if not any(RELEASE_COMPARES[name] for name in compare):
            raise ValueError(f"found {', '.join(compare)}, of which none decides, allowed: such as latency, too")
        return compare

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of the measurements whose figures stand beside."""
        return tuple(name for name in dict.fromkeys(self.compare) if not RELEASE_COMPARES[name])

    @field_validator("tolerance")
    @classmethod
    def _known_metrics(cls, tolerance: dict[str, float], info: ValidationInfo) -> dict[str, float]:
        metrics = [m for name in info.data.get("compare", RELEASE_COMPARES) for m in RELEASE_COMPARES[name]]
        unknown = [metric for metric in tolerance if metric not in metrics]
        if unknown:
            raise ValueError(f"found {unknown[0]!r}, allowed: {', '.join(metrics)}")
        return tolerance or dict.fromkeys(metrics, 0.1)


class Suite(Model):
    """Settings of the stage nexmark (format nexmark only), which asks all queries and checks every answer."""

    queries: tuple[Annotated[str, Field(pattern=r"^q\d+$")], ...] | None = Field(
        default=None, description="queries to ask, of q0 to q23; by default all"
    )
