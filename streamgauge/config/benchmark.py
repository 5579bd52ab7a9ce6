"""The model of the whole benchmark file, and the overrides that one run may set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Protocol, Self, TypeVar

from pydantic import Field, field_validator, model_validator

from streamgauge.base.errors import UserError
from streamgauge.base.field_types import Model, Name, Seed
from streamgauge.bench.measurements import Section
from streamgauge.bench.measurements.catchup.section import Catchup
from streamgauge.bench.measurements.latency.section import Latency
from streamgauge.bench.measurements.recovery.section import Recovery
from streamgauge.bench.measurements.scaling.section import Scaling
from streamgauge.bench.measurements.search.section import Search
from streamgauge.bench.measurements.soak.section import Soak
from streamgauge.config.gate import Gate
from streamgauge.config.limits import Retention, Timeouts
from streamgauge.config.measuring import Promise, Release, Replay, Suite, Workload
from streamgauge.config.metrics import Metrics
from streamgauge.config.nightly import Nightly
from streamgauge.config.systems import AnySystem, System
from streamgauge.descriptions.source import Source
from streamgauge.descriptions.streams import Experiment, Outputs


class _Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)


class Cell(Model):
    """A combination that is measured: experiment × workload × system."""

    experiment: str = Field(description="name of an experiment")
    workload: str = Field(description="name of a workload")
    system: str = Field(description="name of a system")

    @property
    def name(self) -> str:
        return f"{self.experiment}.{self.workload}.{self.system}"


_Scale = Annotated[float, Field(gt=0, le=1)]
#: what the runs of a benchmark's other DAGs are called after it: x and x-nightly would share directories
RESERVED = ("-nightly", "-release")


class Benchmark(Model):
    """The contents of a benchmark file."""

    name: Name = Field(description="name of the benchmark and of its DAG: letters, digits, _ . and -")
    description: str = Field(default="", description="a sentence for people; the page of a run shows it")
    source: Source = Field(description="source of the events, and how to read them")
    experiments: Annotated[tuple[Experiment, ...], Field(min_length=1)] = Field(
        description="streams to make; their names differ"
    )
    workloads: tuple[Workload, ...] = Field(default=(), description="queries to measure; their names differ")
    systems: tuple[AnySystem, ...] = Field(default=(), description="systems under test; their names differ")
    cells: tuple[Cell, ...] | None = Field(
        default=None, description="cells to measure; without them, all combinations are measured"
    )
    advice: Promise | None = Field(
        default=None, description="promise for which each workload's watermark is judged; without it none is"
    )
    replay: Replay = Field(default=Replay(), description="settings of how the driver offers a stream")
    search: Search = Field(default=Search(), description="settings of the search for the sustainable rate")
    latency: Latency = Field(
        default=Latency(), description="runs at fractions of the sustainable rate, which measure latency"
    )
    soak: Soak | None = Field(
        default=None, description="settings of a long run of each cell; without them there is none"
    )
    scaling: Scaling | None = Field(
        default=None, description="settings of each cell's rates on parts of the machine; without them there are none"
    )
    catchup: Catchup | None = Field(
        default=None, description="settings of how each cell catches up after a standstill; without them none does"
    )
    recovery: Recovery | None = Field(
        default=None, description="settings of trials with faults in each cell; without them there are none"
    )
    release: Release | None = Field(
        default=None, description="settings of the release check; without them there is none"
    )
    gate: Gate | None = Field(default=None, description="settings of the gate of commits; without them there is none")
    metrics: Metrics | None = Field(
        default=None, description="backends that metrics are pushed to; without them nothing is pushed"
    )
    scale: _Scale = Field(default=1.0, description="fraction of the source's lines to take, from its beginning")
    schedule: str | None = Field(
        default=None, description="cron expression by which the DAG runs; without it, runs are started by hand"
    )
    retention: Retention = Field(
        default=Retention(), description="limits of the disk space that artifacts take, and the data that is kept"
    )
    suite: Suite = Field(default=Suite(), description="format nexmark: queries that the stage nexmark asks")
    timeouts: Timeouts = Field(default=Timeouts(), description="timeouts after which a task counts as hung")
    nightly: Nightly | None = Field(
        default=None, description="settings of nightly runs; without them there is no nightly DAG"
    )
    quick: bool = Field(
        default=False, description="true in the record of a first look (`run --quick`): its figures have the mode quick"
    )

    @field_validator("name")
    @classmethod
    def _reserved(cls, name: str) -> str:
        if name.endswith(RESERVED):
            raise ValueError(
                f"found {name!r}, allowed: no name that ends in {' or '.join(RESERVED)}, as the runs of those DAGs do"
            )
        return name

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        parts: dict[str, Sequence[_Named]] = {
            "experiments": self.experiments, "workloads": self.workloads, "systems": self.systems,
        }  # fmt: skip
        for key, items in parts.items():
            names = [item.name for item in items]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{key}: found the name {twice[0]!r} twice; names must differ")
        for name in self.release.compare if self.release else ():
            if name in type(self).model_fields and name not in self.sections:
                raise ValueError(f"release.compare: found {name}, allowed: with a section {name}")
        if (catchup := self.catchup) is not None and catchup.behind_s <= (bound_s := self.search.max_age.seconds):
            raise ValueError(
                f"catchup.minutes: found {catchup.minutes:g}, allowed: more than {bound_s / 60:.3g}, which is "
                f"search.max_age: {self.search.max_age}, as a shorter backlog is none"
            )
        if self.advice is not None and (not self.workloads or self.source.order == "event_time"):
            raise ValueError(
                "advice: found no workloads, whose watermarks are judged"
                if not self.workloads
                else "advice: found source.order: event_time, under which no event is late; allowed: file, arrival"
            )
        for cell in self.cells or ():
            pick(self.experiments, cell.experiment, "cells.experiment")
            pick(self.workloads, cell.workload, "cells.workload")
            pick(self.systems, cell.system, "cells.system")
        cells: dict[str, Cell] = {}
        for cell in self.all_cells():  # each has a directory of that name
            if other := cells.get(cell.name):
                both = "; ".join(f"{one.experiment}, {one.workload}, {one.system}" for one in (other, cell))
                raise ValueError(f"cells: found {cell.name} twice ({both}); names must differ")
            cells[cell.name] = cell
        for experiment in self.experiments:
            experiment.check_columns(self.source.kinds)
        return self

    @model_validator(mode="after")
    def _take_turns(self) -> Self:
        """Decides `search.in_turns` for all runs of this file, whichever experiments they choose."""
        if self.search.in_turns is None:
            shares = any(len(group) > 1 for group in self.sharing(self.all_cells()))
            search = self.search.model_copy(update={"in_turns": shares and self.nightly is None})
            object.__setattr__(self, "search", search)  # the model is frozen for everybody else
        return self

    def sharing(self, cells: Sequence[Cell]) -> list[list[Cell]]:
        """Cells in their order, those together that share their processes: they differ in their stream alone.

        Drivers that were started by hand serve one stream each, and so does a job's topic: their cells share none.
        """
        groups: dict[tuple[str, ...], list[Cell]] = {}
        for cell in cells:
            alone = bool(self.replay.remote) or not self.system(cell.system).shares
            groups.setdefault((cell.workload, cell.system, cell.experiment if alone else ""), []).append(cell)
        return list(groups.values())

    @property
    def sections(self) -> dict[str, Section]:
        """Settings of the measurements of its cells, by their names: search, latency, and those that it asks for."""
        return {name: value for name, value in self if isinstance(value, Section)}

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


#: settings of a first look: about a minute a cell, and an interval that may be wide
_QUICK_SEARCH = {
    "warmup_seconds": 8.0,
    "window_seconds": 1.5,
    "window_error": 0.1,
    "recovery_seconds": 5.0,
    "margin": 0.25,
    "yardstick": False,
    "processes": 1,
    "proof_steps": 1,
}
_QUICK_LATENCY = {"fractions": (0.5,), "rates": (), "seconds": 5.0}
#: most minutes, blocks and repeats of a long measurement at a first look; a minute has the 16 samples that a judgement
#: needs, and two repeats have an interval
_QUICK_MINUTES, _QUICK_BLOCKS, _QUICK_REPEATS = 1.0, 2, 2


class Overrides(Model):
    """Settings that a user may override for one run, in the Airflow form or on the command line.

    cells: names of cells, such as late20.hourly.flink. processes, proof_steps: those of `search`. quick: a first look.
    """

    experiments: tuple[str, ...] | None = None
    workloads: tuple[str, ...] | None = None
    systems: tuple[str, ...] | None = None
    cells: tuple[str, ...] | None = None
    scale: _Scale | None = None
    seed: Seed | None = None
    outputs: Outputs | None = None
    processes: Annotated[int, Field(ge=1, le=20)] | None = None
    proof_steps: Annotated[int, Field(ge=0, le=4)] | None = None
    quick: bool | None = None

    def apply(self, benchmark: Benchmark) -> Benchmark:
        """Returns the benchmark with these choices. Raises UserError for an unknown name, or if no cell is left."""
        changed = benchmark.model_copy(
            update={
                "experiments": tuple(
                    one.model_copy(update=self._given("seed", "outputs"))
                    for one in _chosen(benchmark.experiments, self.experiments, "experiment")
                ),
                "workloads": _chosen(benchmark.workloads, self.workloads, "workload"),
                "systems": _chosen(benchmark.systems, self.systems, "system"),
                "search": benchmark.search.model_copy(
                    update={
                        **(_QUICK_SEARCH if self.quick else {}),
                        **self._given("processes", "proof_steps"),
                    }
                ),
                "latency": benchmark.latency.model_copy(update=_QUICK_LATENCY if self.quick else {}),
                **(_shortened(benchmark) | {"quick": True} if self.quick else {}),
                **self._given("scale"),
            }
        )
        return changed.model_copy(update={"cells": self._cells(benchmark, changed)})

    def _given(self, *names: str) -> dict[str, object]:
        return self.model_dump(include={*names}, exclude_none=True)

    def _cells(self, benchmark: Benchmark, changed: Benchmark) -> tuple[Cell, ...] | None:
        """Cells of the chosen experiments, workloads and systems; None if all combinations of these are measured."""
        if benchmark.cells is None and self.cells is None:
            return None
        cells = benchmark.all_cells()
        names = {cell.name for cell in _chosen(cells, self.cells, "cell")}
        left = {cell.name for cell in changed.model_copy(update={"cells": None}).all_cells()}
        kept = tuple(cell for cell in cells if cell.name in names & left)
        if self.cells and not kept:
            raise UserError(
                f"cells: {', '.join(self.cells)}: none is left, as their experiment, workload or system is not chosen"
            )
        return kept


def _shortened(benchmark: Benchmark) -> dict[str, Section]:
    """Sections of long measurements, as a first look has them."""
    shortened: dict[str, Section] = {}
    if (soak := benchmark.soak) is not None and soak.minutes > _QUICK_MINUTES:
        shortened["soak"] = soak.model_copy(update={"minutes": _QUICK_MINUTES, "every_seconds": 1.0})
    if (scaling := benchmark.scaling) is not None:
        shortened["scaling"] = scaling.model_copy(update={"blocks": min(scaling.blocks, _QUICK_BLOCKS)})
    if (catchup := benchmark.catchup) is not None:
        least = benchmark.search.max_age.seconds / 60  # a shorter backlog is none
        minutes = min(catchup.minutes, max(_QUICK_MINUTES, 2 * least))
        shortened["catchup"] = catchup.model_copy(
            update={"minutes": minutes, "repeats": min(catchup.repeats, _QUICK_REPEATS)}
        )
    if (recovery := benchmark.recovery) is not None:
        shortened["recovery"] = recovery.model_copy(update={"repeats": min(recovery.repeats, _QUICK_REPEATS)})
    return shortened


def _chosen(items: tuple[T, ...], names: tuple[str, ...] | None, what: str) -> tuple[T, ...]:
    return items if names is None else tuple(pick(items, name, what) for name in dict.fromkeys(names))


def pick(items: tuple[T, ...], name: str, what: str) -> T:
    """The item of that name. Raises UserError, which lists the known names, if there is none."""
    for item in items:
        if item.name == name:
            return item
    known = ", ".join(item.name for item in items) or "none"
    raise UserError(f"{what}: found {name!r}, allowed: {known}")
