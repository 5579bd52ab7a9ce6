"""Reads the records of a run. One that is missing gives None; so does a damaged one, which is named in the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal, TypeVar

from streamgauge.base.environment import Environment
from streamgauge.base.errors import Damaged, Mistakes, UserError
from streamgauge.bench.measurements import MEASUREMENTS
from streamgauge.bench.measurements.latency.record import LatencyRun
from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.bench.search.claims import claim_of
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.catalog.run_log import RunLog, StageRecord
from streamgauge.catalog.run_summary import LATENCY
from streamgauge.catalog.stages import needed_before, stage_of, stages_of
from streamgauge.config import Benchmark, Cell, Experiment
from streamgauge.records.advice import Advice
from streamgauge.records.answers import AnswerLine, HardQueries
from streamgauge.records.claim import Claim
from streamgauge.records.manifests import StreamManifest
from streamgauge.records.profile import Profile
from streamgauge.records.record import Record
from streamgauge.records.registry import outputs_of
from streamgauge.records.stages import named
from streamgauge.records.trial import LATENCY_TRIALS, TRIALS, WINDOWS, LatencyTrial, MeasuredTrial, MeasuredWindow
from streamgauge.records.validation import Validation
from streamgauge.streams.keys import profile_key, stream_key
from streamgauge.streams.sources import topics

T = TypeVar("T")
R = TypeVar("R", bound=Record)
Outcome = Literal["done", "failed", "unfinished", "missing"]
Output = Literal["right", "wrong", "partly compared", "not compared"]


@dataclass(frozen=True)
class Status:
    """Outcome of a stage, with its reason in one line."""

    stage: str
    scope: dict[str, str]
    outcome: Outcome
    reason: str
    record: StageRecord | None = None

    @property
    def what(self) -> str:
        return named(self.stage, self.scope)


@dataclass(frozen=True)
class Stream:
    """An experiment: the status of its two stages, the stream's manifest, the validation."""

    experiment: Experiment
    generate: Status
    validate: Status
    manifest: StreamManifest | None
    validation: Validation | None
    docs: str | None = None  # path of the validation's Data Docs, relative to the page

    @property
    def validated(self) -> Literal["passed", "failed", "open"]:
        if "failed" in (self.generate.outcome, self.validate.outcome):
            return "failed"
        if self.validation is None or self.validate.outcome != "done":
            return "open"
        return "passed" if self.validation.success else "failed"


@dataclass(frozen=True)
class CellRecord:
    """A cell (experiment × workload × system) with the records of its search and latency stages."""

    cell: Cell
    search_status: Status
    latency_status: Status
    windows: list[MeasuredWindow]  # of the ladders, warm-up included
    trials: list[MeasuredTrial]  # proof trials
    search: SearchAnswer | None
    latency: list[LatencyRun] = field(default_factory=list)
    latency_trials: list[LatencyTrial] = field(default_factory=list)
    further_outputs: dict[str, bool | None] = field(default_factory=dict)  # of the other measurements

    @property
    def rate(self) -> float | None:
        """The rate in events/s, if the claim allows a figure."""
        return self.claim.rate_events_per_s

    @cached_property
    def claim(self) -> Claim:
        """The claim about the rate, from the records of search and latency."""
        return claim_of(self.search, self.latency)

    @property
    def proven(self) -> bool:
        return self.claim.kind in ("proven", "at least")

    @property
    def top_run(self) -> LatencyRun | None:
        """The sound latency run at the largest fraction of the rate; None without one."""
        runs = [run for run in self.latency if run.is_sound] if self.rate else []
        return max(runs, key=lambda run: run.fraction, default=None)

    @property
    def split_runs(self) -> list[LatencyTrial]:
        """Latency runs that recorded the latency split."""
        return [run for run in self.latency_trials if run.details.get("latency_split_ns")]

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Both ends of the 90 % interval in events/s; (None, None) without one."""
        return self.claim.interval or (None, None)

    @property
    def interval_of(self) -> str:
        """Coverage of the interval: "3 processes", or "one process"; empty without an interval."""
        if not self.claim.interval or not self.search:
            return ""
        several = self.search.interval_of == "processes"
        return f"{len(self.search.processes)} processes" if several else "one process"

    @cached_property
    def outputs(self) -> dict[str, bool | None]:
        """Maps each part of the measurements to whether its answers were right; None: they were not compared."""
        search = {part or "search": right for part, right in self.search.outputs.items()} if self.search else {}
        latency = {f"latency ({load_of(run)})": run.correct for run in self.latency}
        return {**search, **latency, **self.further_outputs}

    @property
    def wrong(self) -> list[str]:
        """Parts of the measurements whose answers were wrong."""
        return [part for part, correct in self.outputs.items() if correct is False]

    @property
    def output(self) -> Output:
        """Result of comparing the answers of all measurements with independent ones."""
        outcomes = set(self.outputs.values())
        if False in outcomes:
            return "wrong"
        return "right" if outcomes == {True} else "partly compared" if True in outcomes else "not compared"


class Records:
    """Records of a run, as the page shows them."""

    def __init__(self, benchmark: Benchmark, store: Store, run_id: str) -> None:
        self.run_id = run_id
        self.directory = store.run(run_id)
        self.benchmark = topics.in_run(benchmark, self.directory, ask=False)
        self.store = store
        self.damaged: list[str] = []
        stages = [s for s in RunLog(self.directory).stages() if s.stage != "report"]
        self.stages = [s.model_copy(update={"error": s.error and self.relative(s.error)}) for s in stages]

    def status(self, stage: str, **scope: str) -> Status:
        """Status of the last attempt at a stage within this scope."""
        last = next((s for s in reversed(self.stages) if s.stage == stage and s.scope == scope), None)
        if last is None:
            return Status(stage, scope, "missing", "not run")
        if last.state == "done":
            return Status(stage, scope, "done", "", last)
        if last.state == "failed":
            return Status(stage, scope, "failed", one_line(last.error) or "failed without a reason", last)
        if last.state == "skipped":
            return Status(stage, scope, "missing", f"skipped, {one_line(last.error)}", last)
        why = "done only in part" if last.state == "partly" else "started and not ended: still running, or killed"
        return Status(stage, scope, "unfinished", why, last)

    def blocker(self, status: Status) -> Status | None:
        """Status of the earlier stage that kept this one from running; None if it ran, or if there is no such stage."""
        if status.outcome != "missing":
            return None
        asked = {stage.name: stage for stage in stages_of(self.benchmark)}
        needed = needed_before(asked.get(status.stage) or stage_of(status.stage), status.scope)
        before = (self.status(stage.name, **scope) for stage, scope in needed)
        return next((earlier for earlier in before if earlier.outcome != "done"), None)

    def why(self, status: Status) -> str:
        """Says why something is missing from the page."""
        blocker = self.blocker(status)
        return f"not run: see {blocker.what}" if blocker else status.reason or "not found"

    @cached_property
    def profile(self) -> Profile | None:
        artifact = self._artifact(self.status("analyze"), "profile", profile_key)
        return self._sound(lambda: Profile.read(artifact.file("profile.json"))) if artifact else None

    def advice(self, workload: str) -> Advice | None:
        """The advice on a workload, of which the stage left a record in this run."""
        record = self.status("advice", workload=workload).record
        artifact = self.store.find("advice", record.key) if record and record.key else None
        return self._sound(lambda: Advice.read(artifact.file("advice.json"))) if artifact else None

    @cached_property
    def streams(self) -> list[Stream]:
        return [self._stream(experiment) for experiment in self.benchmark.experiments]

    @cached_property
    def hard(self) -> list[HardQueries]:
        """Records of the hard queries (answers.hard_queries) in this run, sorted by system and disorder."""
        files = list(self.directory.glob("hard-*.json"))
        hard = [self._sound(partial(HardQueries.read, file)) for file in files]
        return sorted(filter(None, hard), key=lambda one: (one.system, one.disorder_percent))

    @cached_property
    def nexmark(self) -> list[AnswerLine]:
        """Answers that answers.record wrote in this run."""
        return self._sound(lambda: AnswerLine.read_log(self.directory / "nexmark.jsonl")) or []

    @cached_property
    def suites(self) -> list[Status]:
        """Status of the stage nexmark for each experiment; empty for a source of another format."""
        names = [e.name for e in self.benchmark.experiments if self.benchmark.source.format == "nexmark"]
        return [self.status("nexmark", experiment=name) for name in names]

    @cached_property
    def cells(self) -> list[CellRecord]:
        return [self._cell(cell) for cell in self.benchmark.all_cells()]

    @cached_property
    def environments(self) -> list[Environment]:
        """Distinct environments (machine and software) in which stages ended well; usually one."""
        known = [stage.environment for stage in self.stages if stage.environment]
        return [one for number, one in enumerate(known) if one not in known[:number]]

    def relative(self, text: str) -> str:
        """Makes the paths in a text relative: a page may be moved with its run to another machine."""
        for place in (self.directory, self.store.root):
            text = text.replace(f"{place.absolute()}/", "").replace(f"{place}/", "")
        return text

    def _stream(self, experiment: Experiment) -> Stream:
        generate = self.status("generate", experiment=experiment.name)
        validate = self.status("validate", experiment=experiment.name)
        stream = self._artifact(generate, "stream", lambda store, benchmark: stream_key(store, benchmark, experiment))
        manifest = self._sound(lambda: stream.read(StreamManifest)) if stream else None
        place = self.directory / f"validation-{experiment.name}"  # beside the page, also of a failed stage
        is_over = validate.outcome not in ("unfinished", "missing")
        validation = self._sound(lambda: Validation.read(place / "result.json")) if is_over else None
        docs = place / "docs" / "index.html"
        shown = docs.relative_to(self.directory).as_posix() if validation and docs.exists() else None
        return Stream(experiment, generate, validate, manifest, validation, shown)

    def _cell(self, cell: Cell) -> CellRecord:
        scope = cell.model_dump()
        place = self.directory / "cells" / cell.name
        search, status = self.of_cell(cell, "search", SearchAnswer), self.status("search", **scope)
        windows = self._sound(lambda: MeasuredWindow.read_log(place / WINDOWS)) or []
        trials = self._sound(lambda: MeasuredTrial.read_log(place / TRIALS)) or []
        latency = self._sound(lambda: LatencyRun.read_all(place / LATENCY)) or []
        runs = self._sound(lambda: LatencyTrial.read_log(place / LATENCY_TRIALS)) or []
        if status.outcome in ("failed", "unfinished") and search and windows and windows[-1].plan != search.plan:
            search, latency, runs = None, [], []  # of other settings than the search that has not ended
        latency, runs = [one for one in latency if _is_of(search, one)], [one for one in runs if _is_of(search, one)]
        plan = _shown_plan(search, windows, trials)
        return CellRecord(
            cell,
            status,
            self.status("latency", **scope),
            [line for line in windows if line.plan == plan],
            [line for line in trials if line.plan == plan],
            search,
            latency,
            list({(run.common, run.rate_events_per_s): run for run in runs}.values()),  # a retried stage has all again
            self._further_outputs(cell),
        )

    def _further_outputs(self, cell: Cell) -> dict[str, bool | None]:
        """Says of each part of the measurements other than search and latency whether its answers were right."""
        outputs: dict[str, bool | None] = {}
        for name in self.benchmark.sections:
            is_done = self.status(name, **cell.model_dump()).outcome == "done"
            if name in ("search", "latency") or not (is_done or name in MEASUREMENTS.built_in):
                continue
            try:
                read = partial(outputs_of, self.directory / "cells" / cell.name, name)
                outputs |= self._sound(read) or {}
            except Exception as problem:
                outputs[name] = None
                if not isinstance(problem, UserError):  # the section on the cell has that one
                    self.damaged.append(f"{name}: its package's record fails: {type(problem).__name__}: {problem}")
        return outputs

    def of_cell(self, cell: Cell, name: str, model: type[R]) -> R | None:
        """The record of a measurement of a cell; None if it is missing, or damaged."""
        return self._sound(lambda: model.read(self.directory / "cells" / cell.name / f"{name}.json"))

    def _artifact(self, status: Status, kind: str, key: Callable[[Store, Benchmark], str]) -> Artifact | None:
        """Artifact that the stage recorded; without a record, the one an earlier run made from the same inputs."""
        if status.outcome in ("failed", "unfinished"):
            return None
        recorded = status.record.key if status.record else None
        try:
            return self._sound(lambda: self.store.recall(kind, recorded or key(self.store, self.benchmark)))
        except (UserError, ValueError):  # such as sources that are gone, of which the key is made
            return None

    def _sound(self, read: Callable[[], T]) -> T | None:
        """Returns what `read` does; None if that is missing, or damaged, which `damaged` tells then."""
        try:
            return read()
        except OSError:
            return None
        except Damaged as problem:
            self.damaged.append(str(problem))
            return None

    def require_sound(self) -> None:
        """Raises Mistakes, a line for each, if records that were read so far are damaged."""
        if self.damaged:
            raise Mistakes(list(dict.fromkeys(self.damaged)))


def _is_of(search: SearchAnswer | None, run: LatencyRun | LatencyTrial) -> bool:
    """False for a run at a fraction of another rate than the search found: an earlier search had found that one."""
    rate = search.sustainable_rate_events_per_s if search else None
    return run.common or rate is None or math.isclose(run.rate_events_per_s, run.fraction * rate, rel_tol=1e-6)


def _shown_plan(search: SearchAnswer | None, windows: list[MeasuredWindow], trials: list[MeasuredTrial]) -> str | None:
    """Identifies the search that the page shows: changed settings start a new search in the same files.

    Without an answer it is the last one; a search begins with windows, so the last window identifies it.
    """
    if search and search.plan:
        return search.plan
    return windows[-1].plan if windows else trials[-1].plan if trials else None


def load_of(run: LatencyRun | LatencyTrial) -> str:
    """Names the load of a latency run: a fraction of the cell's rate, or the events/s that all cells were offered."""
    rate = f"{run.rate_events_per_s:,.0f}\u00a0/s".replace(",", "\u202f")
    return rate if run.common else f"{100 * run.fraction:.4g}\u202f%"


def one_line(text: str | None) -> str:
    return " ".join((text or "").split())
