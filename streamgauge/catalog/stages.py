"""The stage table: which job does what, from which artifacts to which. DAGs, docs and tests derive from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from streamgauge.bench.measurements import AFTER_SEARCH, MEASUREMENTS, Section, package_of
from streamgauge.config import Benchmark

Scope = Literal["benchmark", "workload", "experiment", "cell", "pair"]


@dataclass(frozen=True)
class Stage:
    name: str  # also the task's name and, unless it is a measurement, jobs/<name>.py
    reads: tuple[str, ...]
    writes: str
    scope: Scope  # once per benchmark, workload, experiment, cell, or for a pair of systems
    measures: bool  # needs the machine to itself
    does: str
    source: str = "any"  # only for sources of this format
    nightly: bool = False  # only in a nightly run
    always: bool = False  # also after another stage has failed: it works with what there is
    records: bool = False  # reads records alone, hence needs no cluster
    in_turns: bool | None = None  # only where cells take turns (True), or one follows another (False)
    is_measurement: bool = False  # of a cell, by jobs/measure.py; only if the file has its section

    @property
    def stays(self) -> bool:
        """True if the stage runs on the host of its task even with a cluster: its lock and its processes are there."""
        return self.measures or self.records

    @property
    def job(self) -> str:
        """Name of its file in jobs/; all measurements have one."""
        return "measure" if self.is_measurement else self.name

    def arguments(self, scope: Mapping[str, str]) -> list[str]:
        """Arguments by which its job knows what it runs for."""
        own = {"stage": self.name} if self.is_measurement else {}
        return [f"--{key}={value}" for key, value in {**own, **scope}.items()]


def _own_measurements() -> Iterator[Stage]:
    for name in MEASUREMENTS.built_in:
        package = package_of(name)
        in_turns = False if package.in_turns else None
        yield Stage(name, package.needs, name, "cell", True, package.does, in_turns=in_turns, is_measurement=True)


STAGES: tuple[Stage, ...] = (
    Stage("ingest", ("source",), "events", "benchmark", False,
          "reads the source into events; bad lines go to a quarantine"),
    Stage("analyze", ("events",), "profile", "benchmark", False,
          "measures the source's disorder, frequency and watermark curve"),
    Stage("advice", ("events", "profile"), "advice", "workload", False,
          "says how long the workload shall wait for late events, and whether its watermark is still enough"),
    Stage("generate", ("events",), "stream", "experiment", False,
          "writes a stream with exactly the wanted disorder"),
    Stage("validate", ("events", "stream"), "validation", "experiment", False,
          "proves that the stream is what it claims to be"),
    Stage("nexmark", ("stream",), "answers", "experiment", True,
          "asks all queries of the Nexmark suite and the hard queries in batch and in streaming "
          "and checks every answer",
          "nexmark"),
    Stage("turns", ("stream", "validation"), "turns", "benchmark", True,
          "with several experiments: searches in rounds, whose cells share a process; then measures latency",
          always=True, in_turns=True),
    *_own_measurements(),
    Stage("report", ("events", "profile", "advice", "stream", "validation", "answers", "turns", *MEASUREMENTS.built_in),
          "page", "benchmark", False, "puts everything on one HTML page", always=True, records=True),
    Stage("regressions", ("advice", "answers", "turns", *MEASUREMENTS.built_in, "page"), "judgements",
          "benchmark", True,
          "every night: judges the run against earlier nights, reruns suspects, draws the page of all nights",
          nightly=True, always=True),
)  # fmt: skip
#: the release check, which has a DAG of its own
RELEASE = Stage("release", ("stream",), "release verdict", "pair", True,
                "compares a candidate with a baseline: answers, capabilities, latency and CPU in turns")  # fmt: skip
BY_NAME = {stage.name: stage for stage in (*STAGES, RELEASE)}
_TURNED = tuple(stage.name for stage in STAGES if stage.in_turns is False)


def stage_of(name: str) -> Stage:
    """Returns the stage of that name, or of a measurement that a package registers, of whose code nothing is imported.

    Raises UserError for an unknown name.
    """
    if name in BY_NAME:
        return BY_NAME[name]
    MEASUREMENTS.check(name, "stage")
    does = f"measures by {MEASUREMENTS.outside(name)}"
    return Stage(name, AFTER_SEARCH, name, "cell", True, does, is_measurement=True)


def stages_of(benchmark: Benchmark, *, nightly: bool = False) -> list[Stage]:
    """Lists the stages of a run of the benchmark in their order, each with the kinds that it reads in this run."""
    in_turns, sections = benchmark.search.in_turns, benchmark.sections
    last = max(number for number, stage in enumerate(STAGES) if stage.is_measurement)
    outside = tuple(stage_of(name) for name in sections if name not in BY_NAME)
    has_cells = bool(benchmark.all_cells())
    return [
        replace(stage, reads=_reads(stage, outside, sections, in_turns=bool(in_turns)))
        for stage in (*STAGES[: last + 1], *outside, *STAGES[last + 1 :])
        if (has_cells or (stage.scope != "cell" and not stage.in_turns))
        and (not stage.is_measurement or stage.name in sections)
        and (stage.name != "advice" or benchmark.advice is not None)
        and stage.in_turns in (None, in_turns)
        and stage.source in ("any", benchmark.source.format)
        and (nightly or not stage.nightly)
    ]


def _reads(
    stage: Stage, outside: tuple[Stage, ...], sections: Mapping[str, Section], *, in_turns: bool
) -> tuple[str, ...]:
    """Kinds that a stage of a run reads. Where cells take turns, the stage turns writes what some measurements do."""
    turned = _TURNED if in_turns and stage.is_measurement else ()
    left_out = {*MEASUREMENTS.built_in} - {*sections}
    if stage.is_measurement and not sections[stage.name].searches:
        left_out.add("search")
    reads = dict.fromkeys("turns" if kind in turned else kind for kind in stage.reads if kind not in left_out)
    others = [one.writes for one in outside] if {*MEASUREMENTS.built_in} <= {*stage.reads} else []
    return (*reads, *others)


def scopes_of(benchmark: Benchmark, scope: Scope) -> list[dict[str, str]]:
    """Lists what a stage of this scope runs for: `[{"experiment": "late5"}, …]`; `[{}]` if it runs once."""
    if scope == "workload":
        return [{"workload": workload.name} for workload in benchmark.workloads]
    if scope == "experiment":
        return [{"experiment": experiment.name} for experiment in benchmark.experiments]
    if scope == "cell":
        return [cell.model_dump() for cell in benchmark.all_cells()]
    return [{}]


def needed_before(stage: Stage, scope: dict[str, str]) -> list[tuple[Stage, dict[str, str]]]:
    """Lists the stages, each with its scope, that must succeed before this one runs."""
    if stage.always:
        return []
    narrower: dict[Scope, dict[str, str]] = {
        "benchmark": {},
        "workload": {"workload": scope.get("workload", "")},
        "experiment": {"experiment": scope.get("experiment", "")},
        "cell": scope,
        "pair": {},
    }
    return [(one, narrower[one.scope]) for one in STAGES if one.writes in stage.reads]
