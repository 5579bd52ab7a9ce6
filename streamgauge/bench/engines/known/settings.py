"""Settings of the engine `known`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from streamgauge.base.field_types import ByteCount, Delay
from streamgauge.base.units import Duration
from streamgauge.config.systems import System


class KnownSettings(System):
    """The engine known: a simulated system of known capacity, to calibrate the instrument."""

    adapter: ClassVar[str] = "streamgauge.bench.engines.known.known_system:KnownSystem"

    engine: Literal["known"] = Field(description="the calibration instrument")
    capacity: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="events/s that the system carries; by default as many as the driver delivers"
    )
    delay: Delay = Field(default=Duration(0), description="constant delay of its output")
    noise: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0, description="relative standard deviation of a batch's duration"
    )
    batch_cost: Delay = Field(default=Duration(0), description="fixed time of a batch, besides its rows")
    batch_rows: Annotated[int, Field(gt=0)] = Field(default=10_000_000, description="largest number of rows in a batch")
    trigger: Delay = Field(default=Duration(0), description="least time between the beginnings of two batches")
    hiccups: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0, description="share of batches that take three times as long"
    )
    compile: Delay = Field(
        default=Duration(0), description="time constant with which a slow start (1.5 times as slow) decays"
    )
    between: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0, description="spread of fresh processes: standard deviation of their speed's logarithm"
    )
    seed: Annotated[int, Field(ge=0)] = Field(
        default=0, description="seed of its random faults; 0: a new seed for each fresh process"
    )
    leak: ByteCount = Field(default=0, description="bytes of memory that it takes each second and never gives back")
    restart: Delay = Field(default=Duration(0), description="time from a kill until it goes on with its trial")
    commits: Literal["taken", "answered"] = Field(
        default="taken",
        description="instant at which it commits rows: once it has taken them, so a kill loses answers, or once it "
        "has answered them",
    )
    checkpoint: Delay = Field(
        default=Duration.parse("500ms"),
        description="time between two of its reports; with commits: answered, it commits what it reports",
    )
    reconnect: Delay = Field(default=Duration(0), description="time for which it tries to reach a driver that is away")
    continuous: bool = Field(default=False, description="row by row, without micro-batches")
    pipeline: Delay = Field(
        default=Duration(0),
        description="continuous: time of a row from end to end; with n rows waiting the system carries n/pipeline at "
        "most",
    )
    parallelism: Annotated[int, Field(ge=1)] = Field(
        default=1, description="number of simulated CPUs, unless a measurement gives it others"
    )
    contention: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0, description="the σ of the scalability law that its capacity, that of one CPU, follows on others"
    )
    coherency: Annotated[float, Field(ge=0, lt=1)] = Field(default=0.0, description="the κ of that law")

    @property
    def away_s(self) -> Mapping[str, float]:
        return {"kill": self.restart.seconds}

    def numbers(self, value: int) -> Mapping[str, Mapping[str, object]]:
        return {"parallelism": {"parallelism": value}}

    def checkpointing(self, interval: Duration) -> Self | None:
        return self.model_copy(update={"checkpoint": interval}) if self.commits == "answered" else None
