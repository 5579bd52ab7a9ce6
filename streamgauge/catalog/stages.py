"""The stage table: which job does what, from which artifacts to which. DAGs, docs and tests derive from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streamgauge.config import Benchmark

Scope = Literal["benchmark", "experiment", "cell", "pair"]


@dataclass(frozen=True)
class Stage:
    name: str  # also jobs/<name>.py and the task's name
    reads: tuple[str, ...]
    writes: str
    scope: Scope  # once per benchmark, per experiment, per cell, or for a pair of systems
    measures: bool  # needs the machine to itself
    does: str
    source: str = "any"  # only for sources of this format
    nightly: bool = False  # only in a nightly run
    always: bool = False  # also after another stage has failed: it works with what there is
    records: bool = False  # reads records alone, hence needs no cluster
    in_turns: bool | None = None  # only where cells take turns (True), or one follows another (False)

    @property
    def stays(self) -> bool:
        """True if the stage runs on the host of its task even with a cluster: its lock and its processes are there."""
        return self.measures or self.records


STAGES: tuple[Stage, ...] = (
    Stage("ingest", ("source",), "events", "benchmark", False,
          "reads the source into events; bad lines go to a quarantine"),
    Stage("analyze", ("events",), "profile", "benchmark", False,
          "measures the source's disorder, frequency and watermark curve"),
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
    Stage("search", ("stream", "validation"), "search", "cell", True,
          "finds the highest rate that the system sustains", in_turns=False),
    Stage("latency", ("stream", "search"), "latency", "cell", True,
          "measures latency at fractions of that rate", in_turns=False),
    Stage("report", ("events", "profile", "stream", "validation", "answers", "turns", "search", "latency"), "page",
          "benchmark", False, "puts everything on one HTML page", always=True, records=True),
    Stage("regressions", ("answers", "turns", "search", "latency", "page"), "judgements", "benchmark", True,
          "every night: judges the run against earlier nights, reruns suspects, draws the page of all nights",
          nightly=True, always=True),
)  # fmt: skip
#: the release check, which has a DAG of its own
RELEASE = Stage("release", ("stream",), "release verdict", "pair", True,
                "compares a candidate with a baseline: answers, capabilities, latency and CPU in turns")  # fmt: skip
BY_NAME = {stage.name: stage for stage in (*STAGES, RELEASE)}


def stages_of(benchmark: Benchmark, *, nightly: bool = False) -> list[Stage]:
    """Lists the stages of a run of this benchmark, in their order."""
    has_cells = bool(benchmark.all_cells())
    return [
        stage
        for stage in STAGES
        if (has_cells or (stage.scope != "cell" and not stage.in_turns))
        and stage.in_turns in (None, benchmark.search.in_turns)
        and stage.source in ("any", benchmark.source.format)
        and (nightly or not stage.nightly)
    ]


def scopes_of(benchmark: Benchmark, scope: Scope) -> list[dict[str, str]]:
    """Lists what a stage of this scope runs for: `[{"experiment": "late5"}, …]`; `[{}]` if it runs once."""
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
        "experiment": {"experiment": scope.get("experiment", "")},
        "cell": scope,
        "pair": {},
    }
    return [(one, narrower[one.scope]) for one in STAGES if one.writes in stage.reads]
