"""The stage table: which job does what, from which artifacts to which. DAGs, docs and tests derive from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    Stage("search", ("stream",), "search", "cell", True,
          "finds the highest rate that the system sustains"),
    Stage("latency", ("stream", "search"), "latency", "cell", True,
          "measures latency at fractions of that rate"),
    Stage("report", ("events", "profile", "stream", "validation", "answers", "search", "latency"), "page",
          "benchmark", False, "puts everything on one HTML page"),
    Stage("regressions", ("answers", "search", "latency", "page"), "judgements", "benchmark", True,
          "every night: judges the run against earlier nights, reruns suspects, draws the page of all nights",
          nightly=True),
)  # fmt: skip
#: the release check, which has a DAG of its own
RELEASE = Stage("release", ("stream",), "release verdict", "pair", True,
                "compares a candidate with a baseline: answers, capabilities, latency and CPU in turns")  # fmt: skip
BY_NAME = {stage.name: stage for stage in (*STAGES, RELEASE)}
