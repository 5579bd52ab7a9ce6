"""Measurements of cells: the one table of them, and what each declares.

A measurement is a package with a file for each of its roles: `section.py` has its section of the benchmark file and how
long it takes, `record.py` what it writes, `stage.py` how it measures, and `page.py` what a run's page shows. Each file
may import what its role's wing may import (tests/test_floors.py). Another measurement is one more folder here, and a
row below.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ConfigDict, Field

from streamgauge.base.errors import UserError
from streamgauge.base.field_types import Model, PositiveFloat
from streamgauge.base.plugins import Parts, loaded

if TYPE_CHECKING:
    from streamgauge.config import Benchmark

MEASUREMENTS = Parts(
    "measurements",
    {
        "search": "streamgauge.bench.measurements.search:SEARCH",
        "latency": "streamgauge.bench.measurements.latency:LATENCY",
        "soak": "streamgauge.bench.measurements.soak:SOAK",
        "scaling": "streamgauge.bench.measurements.scaling:SCALING",
        "catchup": "streamgauge.bench.measurements.catchup:CATCHUP",
        "recovery": "streamgauge.bench.measurements.recovery:RECOVERY",
    },
)

_NAME = re.compile(r"[a-z][a-z0-9_]*")
#: names of other stages, of what they write, and of records, which a measurement's own name would stand for as well
_OTHERS = (
    "ingest events analyze profile advice generate stream validate validation nexmark answers turns report page "
    "regressions judgements release stages windows trials capabilities hard results night notices topic gate"
)
RESERVED = frozenset(_OTHERS.split())

#: what the stage of a measurement reads that follows the search of its cell, as those of packages do
AFTER_SEARCH = ("stream", "validation", "search")


@dataclass(frozen=True)
class MeasurementPackage:
    """Declaration of a measurement. Its name is that of its section, of its stage, and of its record.

    Code is named as `package.module:name`, and is imported where it is used. Fields with a default are for measurements
    of this project: a run is planned without the code of other packages.
    """

    section: str  # a Section, or an OwnSection
    measure: str  # (CellRun, its section) -> facts for the log of stages; see bench/measure/cell_run.py
    blocks: str  # (Records, CellRecord) -> blocks for the cell on the run's page
    records: Mapping[str, str]  # by name: a Record each; that of the measurement's own name is NAME.json of a cell
    does: str = ""  # for the table of stages
    needs: tuple[str, ...] = AFTER_SEARCH  # what its stage reads; no search, if the section needs none
    in_turns: bool = False  # where cells take turns, the stage turns measures it


@dataclass(frozen=True)
class Pace:
    """Speeds at which a host does its work, from which estimates follow."""

    start_s: float  # start of a Spark or Flink system with its driver
    bytes_per_s: float  # rate at which a source is read, sorted and written again
    warm: float  # part of search.warmup_seconds that a system needs
    windows: float  # lengths of windows that a ladder takes
    change_s: float  # from one stream to another, in cells that share a process
    blocks: float  # part of search.blocks that are measured
    loads: float  # part of the loads of a proof that are tried
    trials: float  # trials at each load, in lengths of search.recovery_seconds
    run: float  # lengths of latency.seconds that a latency run takes
    nexmark_query_s: float  # a query in one mode, besides its events
    nexmark_events_per_s: float

    def warm_s(self, benchmark: Benchmark) -> float:
        """Estimates the seconds until a fresh system has started and is warm."""
        return self.start_s + self.warm * benchmark.search.warmup_seconds


#: a host slower than any that was tried, where everything takes as long as it may: for timeouts
LONGEST = Pace(60.0, 2e6, 1.0, 32.0, 20.0, 2.0, 1.0, 3.0, 1.0, 10.0, 2_000.0)
#: fitted to runs of configs/ on two cores: for people
USUAL = Pace(12.0, 20e6, 0.8, 22.0, 3.5, 1.2, 0.5, 0.8, 2.0, 4.0, 20_000.0)


class Section(Model):
    """Settings of a measurement: the section of the benchmark file that bears its name."""

    @property
    def searches(self) -> bool:
        """False if the measurement needs no rate that a search finds."""
        return True

    @abstractmethod
    def cell_seconds(self, benchmark: Benchmark, pace: Pace = LONGEST) -> float:
        """Estimates the seconds of the measurement of a cell."""

    def hints(self, benchmark: Benchmark) -> Iterator[str]:  # noqa: ARG002 - most sections leave none
        """Yields what will probably not be measured with these settings, a line each."""
        yield from ()


class RatedSection(Section):
    """Settings of a measurement at one rate: the one that they name, or a fraction of the sustainable one."""

    rate: PositiveFloat | None = Field(
        default=None, description="events/s that are offered, whatever the search found; no fraction of its rate then"
    )

    @property
    def searches(self) -> bool:
        return self.rate is None


class OwnSection(Section):
    """Settings of a measurement that a package registers: the base of the model of its section."""

    seconds: PositiveFloat = Field(
        default=60.0, description="about how long a cell is measured, for the plan and for timeouts"
    )

    def cell_seconds(self, benchmark: Benchmark, pace: Pace = LONGEST) -> float:
        return pace.warm_s(benchmark) + self.seconds


class UncheckedSection(OwnSection):
    """Section as the file has it: its further keys are checked by the package's model, which a check does not load."""

    model_config = ConfigDict(extra="allow")


def refusal(name: str) -> str:
    """Says why the measurement of a package cannot have this name; empty if it can."""
    place = MEASUREMENTS.outside(name)
    if place is not None and name in RESERVED:
        return f"{place} is registered under this name, which is one of Streamgauge's stages or records; rename it"
    if place is not None and not _NAME.fullmatch(name):
        return f"{place} is registered under this name, allowed: small letters, digits and _, a letter first; rename it"
    return ""


def package_of(name: str) -> MeasurementPackage:
    """Returns the declaration of a measurement. Raises UserError, one line that begins with its name."""
    if why := refusal(name):
        raise UserError(f"{name}: {why}")
    package = MEASUREMENTS.load(name, name)
    if not isinstance(package, MeasurementPackage):
        place = MEASUREMENTS.outside(name)
        raise UserError(f"{name}: {place} is no MeasurementPackage of streamgauge.bench.measurements")
    return package


def section_model(name: str) -> type[Section]:
    """Returns the model of a measurement's section. Raises UserError."""
    place, base = package_of(name).section, Section if name in MEASUREMENTS.built_in else OwnSection
    model = loaded(place, name)
    if not (isinstance(model, type) and issubclass(model, base)):
        raise UserError(f"{name}: {place} is no {base.__name__} of streamgauge.bench.measurements")
    return model


def function_of(place: str, name: str) -> Callable[..., object]:
    """Returns a function that a measurement names. Raises UserError, one line that begins with the measurement."""
    function = loaded(place, name)
    if not callable(function):
        raise UserError(f"{name}: {place} is no function")
    return function
