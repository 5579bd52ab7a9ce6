"""What is measured, and how: workloads, systems, replay, search, latency, release check, suite."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from streamgauge.config.fields import Delay, Model, Name, Percent, PositiveFloat
from streamgauge.units import Duration


class Workload(Model):
    """A query over one source: which columns are its key and value, which windows it uses."""

    name: Name
    query: str = Field(description="a query of the registry: see `streamgauge workloads`")
    key: str | None = None
    value: str | None = None
    window: Delay = Duration.parse("10s")
    slide: Delay | None = None
    watermark: Delay = Duration(0)
    mark: str | None = Field(default=None, description="the value of events of the second kind, as text")
    top: Annotated[int, Field(gt=0, le=1000)] = 10


class System(Model):
    """A system under test: an engine, where it runs, and its settings."""

    name: Name
    engine: str = Field(default="spark", description="spark, known, or package.module:Class")
    master: str = "local[1]"
    spark_home: str | None = Field(default=None, description="another Spark than the built-in one")
    python: str | None = Field(default=None, description="that Spark's Python")
    state_store: Literal["hdfs", "rocksdb"] = "hdfs"
    changelog_checkpointing: bool = False
    checkpoint_file_manager: Literal["default", "filesystem"] = "filesystem"
    checkpoints: str | None = Field(
        default=None, description="folder that all of Spark's hosts reach, such as hdfs://…; none: beside the run"
    )
    trigger: Delay = Duration(0)
    batch_rows: Annotated[int, Field(gt=0)] = 1_000_000
    memory: str = "2g"
    cpus: tuple[int, ...] | None = Field(default=None, description="pin the system to these CPUs, once it is warm")
    conf: dict[str, str] = Field(default_factory=dict, description="further engine settings")
    capacity: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="engine known: events/s that it carries"
    )
    delay: Delay = Field(default=Duration(0), description="engine known: its constant delay")
    noise: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Replay(Model):
    """How the driver offers a stream."""

    mode: Literal["constant", "time_map"] = "constant"
    profile: Literal["constant", "steps", "sine", "burst", "source"] = "constant"
    processes: Annotated[int, Field(ge=1, le=64)] = 1
    partitions: Annotated[int, Field(ge=1, le=1024)] = 1
    densify: Annotated[int, Field(ge=1)] = 1
    queue_seconds: PositiveFloat = Field(
        default=30.0, description="how many seconds of events the queues hold before they overflow"
    )
    max_memory_mb: Annotated[int, Field(gt=0)] = 1024
    cpus: tuple[int, ...] | None = Field(default=None, description="pin the driver to these CPUs")
    max_slip: Delay = Field(
        default=Duration.parse("100ms"), description="p99 of the schedule's slip; above it a trial is invalid"
    )
    max_clock_offset: Delay = Field(
        default=Duration.parse("100ms"),
        description="between the clocks that stamp offers and emissions, error bound included; above it a trial is invalid",
    )
    remote: tuple[Annotated[str, Field(pattern=r"^[^\s:,]+:\d{1,5}$")], ...] = Field(
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
        """Driver processes, wherever they run."""
        return len(self.remote) or self.processes


class Search(Model):
    """How the sustainable rate is searched for."""

    start_rate: PositiveFloat | None = Field(
        default=None, description="first guess in events/s; without it, the first probe is at max_rate"
    )
    min_rate: PositiveFloat = 1.0
    max_rate: PositiveFloat = 5_000_000.0
    rates: Annotated[tuple[PositiveFloat, ...], Field(min_length=1)] | None = Field(
        default=None, description="search only these rates (events/s, ascending) instead of a range"
    )
    precision: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.04, description="relative width of the last bracket"
    )
    max_trials: Annotated[int, Field(ge=2, le=100)] = 10
    confirmations: Annotated[int, Field(ge=0, le=10)] = 1
    repeats: Annotated[int, Field(ge=1, le=20)] = Field(
        default=1, description="whole searches, each with a fresh system; the median counts, the spread is shown"
    )
    trial_seconds: PositiveFloat = 20.0
    warmup_rounds: Annotated[int, Field(ge=0, le=20)] = Field(
        default=6,
        description="at most so many rounds of 10 s before a fresh system counts; fewer when what it carries is steady",
    )
    warmup_batches: Annotated[int, Field(ge=0)] = 3
    fresh: Literal["search", "trial"] = "search"
    verdict: str = Field(default="age_slope", description="age_slope, or package.module:function")
    max_age_slope: PositiveFloat = Field(
        default=0.03, description="seconds of age per second that still count as steady"
    )
    max_age: Delay = Duration.parse("10s")
    min_batches: Annotated[int, Field(ge=3)] = 8

    @model_validator(mode="after")
    def _rates_in_order(self) -> Self:
        if self.rates and any(a >= b for a, b in pairwise(self.rates)):
            raise ValueError(f"rates: found {list(self.rates)}, allowed: ascending, each once")
        if self.min_rate > self.max_rate:
            raise ValueError(f"min_rate: found {self.min_rate:g}, which is above max_rate {self.max_rate:g}")
        if self.start_rate is not None and not self.min_rate <= self.start_rate <= self.max_rate:
            raise ValueError(
                f"start_rate: found {self.start_rate:g}, allowed: {self.min_rate:g} to {self.max_rate:g} "
                "(min_rate to max_rate)"
            )
        return self


class Latency(Model):
    """Latency runs at fractions of the found rate."""

    fractions: tuple[Annotated[float, Field(gt=0, le=2)], ...] = (0.5, 0.8, 0.9, 1.0)
    seconds: PositiveFloat = 20.0


#: of a release check: lower is better
RELEASE_METRICS = {
    "event_latency_ms_p50": "ms",
    "event_latency_ms_p99": "ms",
    "system_cpu_us_per_event": "us",
}


class Release(Model):
    """What a release check asks of two systems: answers first, then latency and CPU at a fixed rate, in turns."""

    rate: PositiveFloat = Field(description="events/s at which both are measured; below what the slower one sustains")
    seconds: PositiveFloat = 8.0
    warmup_seconds: PositiveFloat = Field(default=8.0, description="of each fresh process, before it is measured")
    repetitions: Annotated[int, Field(ge=4, le=100)] = Field(
        default=4, description="rounds of baseline, candidate, baseline; each a fresh process"
    )
    reruns: Annotated[int, Field(ge=1, le=100)] = Field(default=4, description="further rounds of suspects")
    tolerance: dict[str, Annotated[float, Field(gt=0, lt=10)]] = Field(
        default_factory=lambda: dict.fromkeys(RELEASE_METRICS, 0.1),
        description="metric -> the smallest relative slowdown that must not ship; other metrics are not judged",
    )
    queries: tuple[str, ...] = Field(default=("all",), description="of the Nexmark suite: all, or some of q0 to q23")
    events: Annotated[int, Field(ge=50)] = Field(default=5_000, description="that those queries are asked about")
    disorder_percent: Percent = Field(default=20.0, description="of these events")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1

    @field_validator("tolerance")
    @classmethod
    def _known_metrics(cls, tolerance: dict[str, float]) -> dict[str, float]:
        unknown = [metric for metric in tolerance if metric not in RELEASE_METRICS]
        if unknown or not tolerance:
            raise ValueError(f"found {unknown[0] if unknown else 'none'!r}, allowed: {', '.join(RELEASE_METRICS)}")
        return tolerance


class Suite(Model):
    """Format nexmark: the stage that asks all queries and checks every answer."""

    queries: tuple[Annotated[str, Field(pattern=r"^q\d+$")], ...] | None = Field(
        default=None, description="some of q0 to q23; none: all"
    )
