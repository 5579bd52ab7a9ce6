"""The benchmark file: frozen models, checked at load; every message names the key, what was found, what is allowed."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from streamgauge.errors import UserError
from streamgauge.schemas import NEXMARK
from streamgauge.units import Duration, Tick, TimeUnit, parse_bytes, tick_of


def _length(found: object) -> Duration:
    """Times are lengths throughout: none is negative."""
    duration = Duration.parse(found)
    if duration.ps < 0:
        raise ValueError(f"found {found}, allowed: 0 or more")
    return duration


Delay = Annotated[
    Duration,
    BeforeValidator(_length),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)?\s*(ps|ns|us|ms|s|m|min|h|d)$"}),
]
ByteCount = Annotated[
    int,
    BeforeValidator(parse_bytes),
    WithJsonSchema({"type": ["string", "integer"], "pattern": r"^\d+(\.\d+)?\s*([kKMGT]i?B|B)?$"}),
]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Ratio = Annotated[int, Field(gt=0, lt=2**31)]
_ONE_OR_MANY = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}


T = TypeVar("T")
M = TypeVar("M", bound="Model")


def _column(found: Any) -> Any:
    if not isinstance(found, str | int) or isinstance(found, bool) or (isinstance(found, int) and found < 0):
        raise ValueError(f"found {found!r}, allowed: a name, or a 0-based index")
    return found


def _one_csv(outputs: tuple[str, ...]) -> tuple[str, ...]:
    if {"csv", "csv-parts"} <= set(outputs):
        raise ValueError("found csv and csv-parts, allowed: one of them; they hold the same rows")
    return outputs


Outputs = Annotated[tuple[Literal["parquet", "csv", "csv-parts"], ...], AfterValidator(_one_csv)]


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class TimeColumn(Model):
    """Where a time stands in a line and how it is written: a unit, a datetime pattern, or ISO-8601."""

    column: Annotated[str | Annotated[int, Field(ge=0)], BeforeValidator(_column)]
    unit: TimeUnit | None = None
    format: str | None = Field(default=None, description="strptime (%Y-%m-%d) or letters (yyyy-MM-dd HH:mm:ss)")
    iso: bool = False
    zone: str = Field(default="UTC", description="zone of naive times, an IANA name")

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, zone: str) -> str:
        try:
            ZoneInfo(zone)
        except Exception:
            raise ValueError(f"found {zone!r}, allowed: an IANA zone such as Europe/Berlin") from None
        return zone

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.unit is not None) + (self.format is not None) + self.iso > 1:
            raise ValueError("give one of unit, format, iso")
        return self

    @property
    def is_iso(self) -> bool:
        """ISO-8601 is what a column is read as when nothing else is said."""
        return self.unit is None and self.format is None


class Nexmark(Model):
    """Parameters of the Nexmark event generator; the defaults are those of Apache Beam's suite."""

    events: Annotated[int, Field(gt=0, lt=2**42)] = 100_000
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    base_time: datetime = Field(default=datetime(2015, 7, 15, tzinfo=UTC), description="event time of event 0")
    rate: Annotated[int, Field(gt=0, le=1_000_000_000)] = Field(
        default=10_000, description="events per second of event time"
    )
    next_rate: Annotated[int, Field(gt=0, le=1_000_000_000)] | None = Field(
        default=None, description="the other rate between which it changes"
    )
    rate_shape: Literal["square", "sine"] = "sine"
    rate_period: Delay = Duration.parse("600s")
    person_proportion: Annotated[int, Field(gt=0)] = 1
    auction_proportion: Annotated[int, Field(gt=0)] = 3
    bid_proportion: Annotated[int, Field(gt=0)] = 46
    person_bytes: Annotated[int, Field(ge=0, le=10_000)] = 200
    auction_bytes: Annotated[int, Field(ge=0, le=10_000)] = 500
    bid_bytes: Annotated[int, Field(ge=0, le=10_000)] = 100
    hot_auction_ratio: Ratio = 2
    hot_seller_ratio: Ratio = 4
    hot_bidder_ratio: Ratio = 4
    hot_channel_ratio: Ratio = 2
    hot_every: Ratio = Field(default=100, description="one id in so many is hot")
    in_flight_auctions: Ratio = 100
    active_people: Ratio = 1000
    id_lead: Annotated[int, Field(ge=0)] = Field(default=10, description="ids named before they exist")
    first_id: Annotated[int, Field(ge=0)] = 1000
    first_category: Annotated[int, Field(ge=0)] = 10
    categories: Ratio = 5
    out_of_order_group_size: Ratio = Field(default=1, description="events of a group are shuffled")

    @model_validator(mode="after")
    def _shuffled_and_zoned(self) -> Self:
        if self.out_of_order_group_size % 953 == 0:
            raise ValueError(
                f"out_of_order_group_size: found {self.out_of_order_group_size}, allowed: no multiple of 953"
            )
        if self.base_time.tzinfo is None:
            raise ValueError(f"base_time: found {self.base_time}, allowed: a time with its offset, such as …Z")
        return self


class Source(Model):
    """A source of events: files in declared order, and how to read them; or a generator."""

    files: Annotated[tuple[str, ...], WithJsonSchema(_ONE_OR_MANY)] = Field(
        default=(), description="one or more; none for format nexmark"
    )
    format: Literal["csv", "parquet", "nexmark"] = "csv"
    nexmark: Nexmark | None = Field(default=None, description="format nexmark: parameters of the generator")
    separator: str = ","
    quote: Annotated[str, Field(min_length=1, max_length=1)] | None = '"'
    header: bool = True
    time: TimeColumn
    arrival: TimeColumn | None = None
    order: Literal["file", "arrival", "event_time"] = "file"
    columns: dict[str, Literal["string", "int64", "float64"]] = Field(
        default_factory=dict,
        description="columns kept beside the line, for keys and values of workloads",
    )
    column_names: tuple[str, ...] | None = Field(
        default=None, description="names of the fields of a file without a header"
    )
    max_bad_fraction: Annotated[float, Field(ge=0, le=1)] = 0.01

    @model_validator(mode="before")
    @classmethod
    def _generated(cls, raw: Any) -> Any:
        """A generator brings its own time and columns."""
        if not isinstance(raw, dict) or raw.get("format") != "nexmark":
            return raw
        for key in ("files", "arrival", "column_names"):
            if raw.get(key):
                raise ValueError(f"{key}: not for format nexmark, which reads no file; leave it out")
        return {"nexmark": {}, "time": {"column": "date_time", "unit": "us"}, "columns": dict(NEXMARK), **raw}

    @field_validator("files", mode="before")
    @classmethod
    def _one_or_many(cls, files: Any) -> Any:
        return (files,) if isinstance(files, str) else files

    @field_validator("separator", mode="before")
    @classmethod
    def _single_character(cls, found: Any) -> Any:
        separator = _SEPARATORS.get(found, found)
        if not isinstance(separator, str) or len(separator) != 1 or ord(separator) > 127 or separator in '\r\n"':
            raise ValueError(f"found {found!r}, allowed: one ASCII character, or one of {' '.join(_SEPARATORS)}")
        return separator

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.order == "arrival" and self.arrival is None:
            raise ValueError("order: arrival needs an arrival column; add source.arrival.column")
        if self.quote is not None and (not self.quote.isascii() or self.quote in ("\n", "\r", self.separator)):
            raise ValueError(
                f"quote: found {self.quote!r}, allowed: an ASCII character that is no separator and no line end, or null"
            )
        if (self.nexmark is not None) != (self.format == "nexmark"):
            raise ValueError("nexmark: these are parameters of format: nexmark; set both or none")
        if not self.files and self.nexmark is None:
            raise ValueError("files: found none, allowed: one name or a list")
        wrong = [name for name, kind in self.columns.items() if self.nexmark and NEXMARK.get(name) != kind]
        if wrong:
            allowed = ", ".join(f"{name}: {kind}" for name, kind in NEXMARK.items())
            raise ValueError(f"columns: found {wrong[0]}: {self.columns[wrong[0]]}, allowed: {allowed}")
        reserved = {"seq", "event_time", "ingestion_time", "line", "arrival_time"} & set(self.columns)
        if reserved:
            raise ValueError(f"columns: found {sorted(reserved)}, which are names of Streamgauge's own")
        return self

    @property
    def tick(self) -> Tick:
        return tick_of(self.time.unit)


#: what each distribution uses besides min and max
DELAY_PARAMETERS: dict[str, tuple[str, ...]] = {
    "uniform": (),
    "constant": ("mean",),
    "normal": ("mean", "stddev"),
    "exponential": ("mean",),
    "lognormal": ("mean", "sigma"),
    "pareto": ("mean", "alpha"),
    "empirical": ("profile",),
}


class DelaySpec(Model):
    """A delay distribution, truncated to [min, max]; further parameters depend on the distribution."""

    distribution: str = Field(
        default="uniform",
        description="uniform, constant, normal, exponential, lognormal, pareto, empirical, or package.module:name",
    )
    min: Delay = Duration(0)
    max: Delay = Duration.parse("2s")
    mean: Delay | None = None
    stddev: Delay | None = None
    sigma: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="lognormal: of the logarithm"
    )
    alpha: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(default=None, description="pareto: shape")
    profile: str | None = Field(default=None, description="empirical: a profile.json to draw from")

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min: found {self.min}, which is above max {self.max}")
        known = self.distribution in DELAY_PARAMETERS or ":" in self.distribution
        used = DELAY_PARAMETERS.get(self.distribution, ())
        for key in ("mean", "stddev", "sigma", "alpha", "profile"):
            if known and getattr(self, key) is not None and key not in used:
                allowed = ", ".join(("min", "max", *used))
                raise ValueError(f"{key}: found with {self.distribution}, which does not use it, allowed: {allowed}")
        return self


class Experiment(Model):
    """One stream: a target, a delay distribution and a seed."""

    name: Name
    target_percent: Percent
    delay: DelaySpec = DelaySpec()
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 42
    on_infeasible: Literal["error", "closest"] = "error"
    outputs: Outputs = ("parquet",)

    @property
    def target(self) -> Fraction:
        """The target as a fraction of events, exactly as written."""
        return Fraction(repr(self.target_percent)) / 100


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


class MetricsSink(Model):
    """A backend that metrics are pushed to."""

    type: str = Field(description="console, http, graphite, otel, or package.module:Class")
    url: str | None = Field(default=None, description="http: where to POST; otel: the collector, else as its SDK says")
    host: str | None = Field(default=None, description="graphite")
    port: Annotated[int, Field(ge=1, le=65535)] = 2003
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")] = "streamgauge"
    headers_from_env: dict[str, str] = Field(
        default_factory=dict, description="header -> environment variable that holds its value (http, otel)"
    )
    timeout: Delay = Duration.parse("5s")
    options: dict[str, Any] = Field(default_factory=dict, description="of a sink of your own")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = {"http": "url", "graphite": "host"}.get(self.type)
        if needed and getattr(self, needed) is None:
            raise ValueError(f"type {self.type} needs the key {needed}")
        _check_delivery(self.url, self.timeout)
        return self


class Metrics(Model):
    """Where a run's metrics are pushed to while it runs."""

    sinks: tuple[MetricsSink, ...] = ()
    period: Delay = Duration.parse("5s")
    buffer: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=60, description="pushes kept for a backend that does not answer"
    )

    @field_validator("period")
    @classmethod
    def _long_enough(cls, period: Duration) -> Duration:
        if period < Duration.parse("100ms"):
            raise ValueError(f"found {period}, allowed: 100ms or more")
        return period


class Retention(Model):
    """What artifacts may take on the disk; results are never collected."""

    disk_budget: ByteCount = Field(default=parse_bytes("50GiB"), description="checked before a run")
    keep_runs: Annotated[int, Field(ge=1)] = Field(
        default=3, description="the newest runs of each benchmark keep their data"
    )


class Suite(Model):
    """Format nexmark: the stage that asks all queries and checks every answer."""

    queries: tuple[Annotated[str, Field(pattern=r"^q\d+$")], ...] | None = Field(
        default=None, description="some of q0 to q23; none: all"
    )


class Webhook(Model):
    """Where a nightly run's report is POSTed to, as JSON."""

    url: str | None = None
    url_variable: str | None = Field(default=None, description="the environment variable that holds a secret URL")
    headers_from_env: dict[str, str] = Field(
        default_factory=dict, description="header -> environment variable that holds its value"
    )
    timeout: Delay = Duration.parse("10s")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.url is None) == (self.url_variable is None):
            raise ValueError("give one of url, url_variable")
        _check_delivery(self.url, self.timeout)
        return self


class Email(Model):
    """Where a nightly run's report is sent to, through an SMTP server."""

    host: str
    port: Annotated[int, Field(ge=1, le=65535)] = 25
    security: Literal["none", "starttls", "tls"] = "none"
    sender: str
    to: Annotated[tuple[str, ...], Field(min_length=1)]
    user_variable: str | None = Field(default=None, description="the environment variable that holds the user")
    password_variable: str | None = Field(default=None, description="the environment variable that holds the password")
    timeout: Delay = Duration.parse("10s")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.user_variable is None) != (self.password_variable is None):
            raise ValueError("give both of user_variable, password_variable, or none")
        for address in (self.sender, *self.to):
            if not re.fullmatch(r"[^@\s,]+@[^@\s,]+", address):
                raise ValueError(f"found {address!r}, allowed: an address such as team@example.org")
        if self.password_variable and self.security == "none" and self.host not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError("security: found none with a password, allowed: starttls or tls")
        _check_delivery(None, self.timeout)
        return self


class Nightly(Model):
    """A scheduled run that is judged against the nights before it."""

    schedule: str | None = Field(default=None, description="cron expression; none: only when triggered")
    repetitions: Annotated[tuple[Annotated[int, Field(ge=4, le=100)], ...], Field(min_length=1, max_length=4)] = Field(
        default=(8, 16), description="of each side in a suspect's rerun, and in the next one while that leaves it open"
    )
    max_reruns: Annotated[int, Field(ge=0)] = Field(default=3, description="suspects rerun in a night")
    self_tests: Annotated[int, Field(ge=0)] = Field(
        default=1, description="cells and queries compared with themselves in a night, in turn"
    )
    notify: Literal["problems", "always"] = "problems"
    webhook: Webhook | None = None
    email: Email | None = None


def _check_delivery(url: str | None, timeout: Duration) -> None:
    if url is not None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url: allowed: http://host:port/path or https://…")
        if parts.username or parts.password:
            raise ValueError("url: found credentials; use headers_from_env, which keeps them out of files and logs")
    if timeout.ps <= 0:
        raise ValueError(f"timeout: found {timeout}, allowed: above 0")


class Cell(Model):
    """experiment × workload × system."""

    experiment: str
    workload: str
    system: str

    @property
    def name(self) -> str:
        return f"{self.experiment}.{self.workload}.{self.system}"


class Benchmark(Model):
    """One benchmark file."""

    name: Name
    description: str = ""
    source: Source
    experiments: Annotated[tuple[Experiment, ...], Field(min_length=1)]
    workloads: tuple[Workload, ...] = ()
    systems: tuple[System, ...] = ()
    cells: tuple[Cell, ...] | None = Field(
        default=None, description="which cells are measured; without it, all of them"
    )
    replay: Replay = Replay()
    search: Search = Search()
    latency: Latency = Latency()
    release: Release | None = Field(default=None, description="none: no release check")
    metrics: Metrics | None = Field(default=None, description="none: nothing is pushed")
    scale: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0, description="fraction of the source's lines to take, from its beginning"
    )
    schedule: str | None = Field(default=None, description="cron expression, or none")
    retention: Retention = Retention()
    suite: Suite = Suite()
    nightly: Nightly | None = Field(default=None, description="none: no nightly DAG")

    @model_validator(mode="after")
    def _names(self) -> Self:
        for key in ("experiments", "workloads", "systems"):
            names = [item.name for item in getattr(self, key)]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{key}: found the name {twice[0]!r} twice; names must differ")
        for cell in self.cells or ():
            for key, plural in (("experiment", "experiments"), ("workload", "workloads"), ("system", "systems")):
                pick(getattr(self, plural), getattr(cell, key), f"cells.{key}")
        return self

    def experiment(self, name: str) -> Experiment:
        return pick(self.experiments, name, "experiment")

    def workload(self, name: str) -> Workload:
        return pick(self.workloads, name, "workload")

    def system(self, name: str) -> System:
        return pick(self.systems, name, "system")

    def all_cells(self) -> tuple[Cell, ...]:
        if self.cells is not None:
            return self.cells
        return tuple(
            Cell(experiment=e.name, workload=w.name, system=s.name)
            for e in self.experiments
            for w in self.workloads
            for s in self.systems
        )


class Overrides(Model):
    """What a person may change for one run, in the Airflow form or on the command line."""

    experiments: tuple[str, ...] | None = None
    scale: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    outputs: Outputs | None = None

    def apply(self, benchmark: Benchmark) -> Benchmark:
        chosen = (
            benchmark.experiments
            if self.experiments is None
            else tuple(benchmark.experiment(name) for name in self.experiments)
        )
        change: dict[str, Any] = {
            key: value for key in ("seed", "outputs") if (value := getattr(self, key)) is not None
        }
        names = {e.name for e in chosen}
        cells = tuple(c for c in benchmark.cells if c.experiment in names) if benchmark.cells is not None else None
        return benchmark.model_copy(
            update={
                "experiments": tuple(e.model_copy(update=change) for e in chosen),
                "scale": benchmark.scale if self.scale is None else self.scale,
                "cells": cells,
            }
        )


def pick(items: tuple[T, ...], name: str, what: str) -> T:
    """The item of that name. Raises UserError naming what there is."""
    for item in items:
        if getattr(item, "name", None) == name:
            return item
    known = ", ".join(str(getattr(item, "name", item)) for item in items) or "none"
    raise UserError(f"{what}: found {name!r}, allowed: {known}")


def load(path: Path, overrides: Overrides | None = None) -> Benchmark:
    """Reads a YAML benchmark file, the JSON of the DEBS 2019 poster, or a release check's manifest. Raises UserError."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; name a benchmark file (configs/ has examples)") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(f"{path}: cannot be read as UTF-8 text: {problem}") from None
    try:
        raw = yaml.load(text, _UniqueKeyLoader)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        raise UserError(f"{path}:{line} not valid YAML: {getattr(problem, 'problem', problem)}") from None
    if not isinstance(raw, dict):
        raise UserError(f"{path}: found {type(raw).__name__}, allowed: a mapping with name, source, experiments")
    base = path.parent
    if "dataSource" in raw:
        raw = _from_debs2019(raw, path)
    elif "configuration" in raw:
        raw, base = _from_manifest(raw, path), Path()
    benchmark = parse(Benchmark, raw, str(path))
    files = tuple(_located(name, base) for name in benchmark.source.files)
    replay = benchmark.replay
    if replay.cafile:
        replay = replay.model_copy(update={"cafile": _located(replay.cafile, base)})
    experiments = tuple(
        e.model_copy(update={"delay": e.delay.model_copy(update={"profile": _located(e.delay.profile, base)})})
        if e.delay.profile
        else e
        for e in benchmark.experiments
    )
    benchmark = benchmark.model_copy(
        update={
            "source": benchmark.source.model_copy(update={"files": files}),
            "experiments": experiments,
            "replay": replay,
            "systems": tuple(_with_its_spark(system, base) for system in benchmark.systems),
        }
    )
    return overrides.apply(benchmark) if overrides else benchmark


def parse(model: type[M], raw: Any, where: str) -> M:
    """Validates raw against the model. Raises UserError in one line."""
    try:
        return model.model_validate(raw)
    except ValidationError as problem:
        raise UserError(f"{where}: {_one_line(problem, model)}") from None


def schema() -> dict[str, Any]:
    """JSON Schema of the benchmark file, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Streamgauge benchmark",
        **Benchmark.model_json_schema(),
    }


def canonical(value: Any) -> str:
    """One text for one configuration, whatever the order of its keys."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML that refuses a key given twice instead of silently keeping the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":  # <<: keys of an anchor, which may be overridden
                continue
            key = self.construct_object(key_node, deep=deep)
            problem = "is no text" if not isinstance(key, str) else "is given twice" if key in seen else None
            if problem:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} {problem}", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _located(name: str, base: Path) -> str:
    """Relative names are meant from where the benchmark file lies; URLs stay."""
    return name if re.match(r"[a-z0-9]+://", name) else str((base / name).resolve())


def _with_its_spark(system: System, base: Path) -> System:
    """A program without a slash in its name is one on PATH. A link stays: it is what makes an environment's Python."""
    places = {"spark_home": system.spark_home, "python": system.python}
    there = {key: os.path.normpath(base.absolute() / name) for key, name in places.items() if name and "/" in name}
    return system.model_copy(update=there)


def _one_line(problem: ValidationError, model: type[BaseModel]) -> str:
    # a list with a bad item is also said to be too short
    errors = [e for e in problem.errors() if e["type"] != "too_short"] or problem.errors()
    first = errors[0]
    key = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    found = first.get("input")
    if first["type"] == "extra_forbidden":
        message = f"unknown key; allowed here: {', '.join(_allowed_keys(model, first['loc'][:-1]))}"
    elif first["type"] == "missing":
        message = "this key is missing"
    elif "found" not in message and not isinstance(found, dict | list):
        message = f"found {found!r}, allowed: {message.removeprefix('Input should be ')}"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{key}: {message}{more}" if key else f"{message}{more}"


def _allowed_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Keys of the model found by walking the location of an error."""
    schema = model.model_json_schema()
    node: Any = schema
    for part in location:
        node = _resolve(node, schema)
        node = node.get("items", {}) if isinstance(part, int) else node.get("properties", {}).get(part, {})
    return sorted(_resolve(node, schema).get("properties", {}))


def _resolve(node: Any, schema: Any) -> Any:
    while True:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
        elif "anyOf" in node:
            node = next((n for n in node["anyOf"] if n.get("type") != "null"), {})
        else:
            return node


def _from_manifest(raw: dict[str, Any], path: Path) -> Any:
    """Names in it are meant from the working directory."""
    from streamgauge.manifest import holds

    if not holds(raw):
        raise UserError(f"{path}: its sha256 does not hold: it was changed after it was signed")
    return raw["configuration"]


def _from_debs2019(raw: dict[str, Any], path: Path) -> dict[str, Any]:
    """The JSON of Grulich et al., "Generating Reproducible Out-of-Order Data Streams", DEBS 2019.

    Delays are in milliseconds, files have no header, distributions are uniform.
    """
    source = raw.get("dataSource")
    if not isinstance(source, dict):
        raise UserError(f"{path}: dataSource: found {source!r}, allowed: a mapping with file, seperator")
    time = raw.get("time", source.get("time"))
    wanted = raw.get("experimentDataConfigurations")
    if not isinstance(time, dict):
        raise UserError(f"{path}: time: found {time!r}, allowed: a mapping with timeIndex, sourceTimeUnit")
    if not isinstance(wanted, list) or not wanted:
        raise UserError(f"{path}: experimentDataConfigurations: found {wanted!r}, allowed: a list of experiments")
    _known(source, {"file", "seperator", "separator", "time"}, f"{path}: dataSource")
    _known(time, {"timeIndex", "sourceTimeUnit"}, f"{path}: time")
    for key in ("timeIndex", "sourceTimeUnit"):
        if key not in time:
            raise UserError(f"{path}: time.{key}: this key is missing")
    index = time["timeIndex"]
    _known(raw, {"dataSource", "time", "experimentDataConfigurations", "name"}, str(path))
    experiments = []
    for number, item in enumerate(wanted):
        where = f"{path}: experimentDataConfigurations.{number}"
        if not isinstance(item, dict):
            raise UserError(f"{where}: found {item!r}, allowed: a mapping")
        _known(item, {"name", "targetOutOfOrderFactor", "minDelay", "maxDelay", "delaySeed"}, where)
        if "targetOutOfOrderFactor" not in item:
            raise UserError(f"{where}.targetOutOfOrderFactor: this key is missing")
        experiments.append(
            {
                "name": item.get("name", f"experiment{number}"),
                "target_percent": item["targetOutOfOrderFactor"],
                "seed": item.get("delaySeed", 42),
                "delay": {
                    "min": _milliseconds(item.get("minDelay", 0), f"{where}.minDelay"),
                    "max": _milliseconds(item.get("maxDelay", 2000), f"{where}.maxDelay"),
                },
            }
        )
    return {
        "name": raw.get("name", re.sub(r"[^A-Za-z0-9_.-]", "-", path.stem)),
        "source": {
            "files": source.get("file", ()),
            "separator": source.get("seperator", source.get("separator", ",")),
            "header": False,
            "time": {
                "column": int(index) if isinstance(index, str) and re.fullmatch("[0-9]+", index) else index,
                "unit": time["sourceTimeUnit"],
            },
        },
        "experiments": experiments,
    }


def _milliseconds(found: Any, where: str) -> Duration:
    """Of a JSON number, or of one in quotes."""
    try:
        number = Decimal("" if isinstance(found, bool) else str(found))
        return Duration.parse(f"{number:f}ms" if number >= 0 else None)
    except (ArithmeticError, ValueError):
        raise UserError(f"{where}: found {found!r}, allowed: milliseconds, 0 or more") from None


def _known(mapping: dict[str, Any], keys: set[str], where: str) -> None:
    for key in mapping:
        if key not in keys:
            raise UserError(f"{where}: found the key {key!r}, allowed: {', '.join(sorted(keys))}")
