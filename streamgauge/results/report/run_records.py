"""Reads the records of a run. One that is missing gives None; so does a damaged one, which is told of in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from streamgauge.base.errors import Damaged, Mistakes, UserError
from streamgauge.base.jsonl import read_jsonl, read_record
from streamgauge.bench.search.claims import claim_of
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.catalog.run_log import RunLog, StageRecord
from streamgauge.catalog.run_summary import LATENCY, SEARCH
from streamgauge.catalog.stages import BY_NAME, needed_before
from streamgauge.config import Benchmark, Cell, Experiment
from streamgauge.records.claim import Claim
from streamgauge.records.latency import LatencyRun
from streamgauge.records.profile import Profile
from streamgauge.records.record import AGAIN
from streamgauge.records.search import SearchAnswer
from streamgauge.streams.keys import events_key, profile_key, stream_key

T = TypeVar("T")
Outcome = Literal["done", "failed", "unfinished", "missing"]
Output = Literal["right", "wrong", "partly compared", "not compared"]
Json = dict[str, Any]


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
        return " ".join([self.stage, *self.scope.values()])


@dataclass(frozen=True)
class Check:
    """An expectation of a validation; success is None if it was not evaluated."""

    name: str
    note: str
    success: bool | None
    observed: str


@dataclass(frozen=True)
class Validation:
    success: bool | None
    checks: list[Check]
    docs: str | None  # path of the Data Docs, relative to the page


@dataclass(frozen=True)
class Stream:
    """An experiment: the status of its two stages, the stream's manifest, the validation."""

    experiment: Experiment
    generate: Status
    validate: Status
    manifest: Json | None
    validation: Validation | None

    @property
    def validated(self) -> Literal["passed", "failed", "open"]:
        if "failed" in (self.generate.outcome, self.validate.outcome):
            return "failed"
        if self.validation is None or self.validation.success is None or self.validate.outcome != "done":
            return "open"
        return "passed" if self.validation.success else "failed"


@dataclass(frozen=True)
class CellRecord:
    """A cell (experiment × workload × system) with the records of its search and latency stages."""

    cell: Cell
    search_status: Status
    latency_status: Status
    windows: list[Json]  # of the ladders, warm-up included
    trials: list[Json]  # recovery trials
    search: SearchAnswer | None
    latency: list[LatencyRun] = field(default_factory=list)
    latency_trials: list[Json] = field(default_factory=list)

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
    def void(self) -> bool:
        """True if the output of a recovery trial was wrong: the rate of a wrong answer does not count."""
        return self.claim.kind == "wrong"

    @property
    def split_runs(self) -> list[Json]:
        """Latency runs that recorded the latency split."""
        return [run for run in self.latency_trials if (run.get("details") or {}).get("latency_split_ns")]

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Both ends of the 90 % interval in events/s; (None, None) without one."""
        return self.claim.interval or (None, None)

    @property
    def interval_of(self) -> str:
        """Coverage of the interval: "3 processes", or "the fit alone"; empty without an interval."""
        if not self.claim.interval or not self.search:
            return ""
        several = self.search.interval_of == "processes"
        return f"{len(self.search.processes)} processes" if several else "the fit alone"

    @property
    def output(self) -> Output:
        """Result of comparing the outputs of recovery trials and latency runs with DuckDB's answer."""
        found = {run.correct for run in self.latency}
        if self.search and self.search.trials:
            found.add(self.search.correct)
        if False in found:
            return "wrong"
        return "right" if found == {True} else "partly compared" if True in found else "not compared"


class Records:
    """Records of a run, as the page shows them."""

    def __init__(self, benchmark: Benchmark, store: Store, run_id: str) -> None:
        self.benchmark = benchmark
        self.run_id = run_id
        self.directory = store.run(run_id)
        self.store = store
        self.damaged: list[str] = []
        stages = [s for s in RunLog(self.directory).stages() if s.stage != "report"]
        self.stages = [replace(s, error=self._relative(s.error)) for s in stages]

    def status(self, stage: str, **scope: str) -> Status:
        """Status of the last attempt at a stage within this scope."""
        found = [s for s in self.stages if s.stage == stage and s.scope == scope]
        if not found:
            return Status(stage, scope, "missing", "not run")
        last = found[-1]
        if last.state == "done":
            return Status(stage, scope, "done", "", last)
        if last.state == "failed":
            return Status(stage, scope, "failed", one_line(last.error) or "failed without a reason", last)
        if last.state == "skipped":
            return Status(stage, scope, "missing", f"skipped, {one_line(last.error)}", last)
        return Status(stage, scope, "unfinished", "started and not ended: still running, or killed", last)

    def blocker(self, status: Status) -> Status | None:
        """Status of the earlier stage that kept this one from running; None if it ran, or if there is no such stage."""
        if status.outcome != "missing":
            return None
        needed = needed_before(BY_NAME[status.stage], status.scope)
        before = (self.status(stage.name, **scope) for stage, scope in needed)
        return next((earlier for earlier in before if earlier.outcome != "done"), None)

    def why(self, status: Status) -> str:
        """Says why something is missing from the page."""
        blocker = self.blocker(status)
        return f"not run: see {blocker.what}" if blocker else status.reason or "not found"

    @cached_property
    def events(self) -> Json | None:
        found = self._artifact(self.status("ingest"), "events", events_key)
        return found.manifest if found else None

    @cached_property
    def profile(self) -> Profile | None:
        found = self._artifact(self.status("analyze"), "profile", profile_key)
        return self._sound(lambda: Profile.read(found.file("profile.json"))) if found else None

    @cached_property
    def streams(self) -> list[Stream]:
        return [self._stream(experiment) for experiment in self.benchmark.experiments]

    @cached_property
    def hard(self) -> list[Json]:
        """Records of the hard queries (answers.hard_queries) in this run, sorted by system and disorder."""
        found = [self._read(path) for path in self.directory.glob("hard-*.json")]
        return sorted(filter(None, found), key=lambda one: (one.get("system", ""), one.get("disorder_percent", 0)))

    @cached_property
    def nexmark(self) -> list[Json]:
        """Rows that answers.record wrote in this run."""
        return read_jsonl(self.directory / "nexmark.jsonl")

    @cached_property
    def suites(self) -> list[Status]:
        """Status of the stage nexmark for each experiment; empty for a source of another format."""
        names = [e.name for e in self.benchmark.experiments if self.benchmark.source.format == "nexmark"]
        return [self.status("nexmark", experiment=name) for name in names]

    @cached_property
    def cells(self) -> list[CellRecord]:
        return [self._cell(cell) for cell in self.benchmark.all_cells()]

    @cached_property
    def environments(self) -> list[Json]:
        """Distinct environments (machine and software) in which stages ended well; usually one."""
        found: list[Json] = []
        for record in read_jsonl(self.directory / "stages.jsonl"):
            environment = record.get("environment")
            if environment and environment not in found:
                found.append(environment)
        return found

    def _relative(self, text: str | None) -> str | None:
        """Makes the paths in a text relative: a page may be moved with its run to another machine."""
        for place in (self.directory, self.store.root):
            text = text and text.replace(f"{place.absolute()}/", "").replace(f"{place}/", "")
        return text

    def _stream(self, experiment: Experiment) -> Stream:
        generate = self.status("generate", experiment=experiment.name)
        validate = self.status("validate", experiment=experiment.name)
        stream = self._artifact(generate, "stream", lambda store, benchmark: stream_key(store, benchmark, experiment))
        return Stream(experiment, generate, validate, stream.manifest if stream else None, self._validation(validate))

    def _validation(self, status: Status) -> Validation | None:
        """Reads the result beside the page, also of a failed stage; None if the stage is unfinished or was not run."""
        place = self.directory / f"validation-{status.scope['experiment']}"
        result = self._read(place / "result.json")
        if result is None or status.outcome in ("unfinished", "missing"):
            return None
        checks = [_check(item) for item in result.get("expectations") or [] if isinstance(item, dict)]
        docs = place / "docs" / "index.html"
        return Validation(
            result.get("success"), checks, docs.relative_to(self.directory).as_posix() if docs.exists() else None
        )

    def _cell(self, cell: Cell) -> CellRecord:
        scope = cell.model_dump()
        place = self.directory / "cells" / cell.name
        search = self._sound(lambda: SearchAnswer.read(place / SEARCH))
        files = (read_jsonl(place / "windows.jsonl"), read_jsonl(place / "trials.jsonl"))
        windows, trials = _last_search(*files, plan=search.plan if search else None)
        return CellRecord(
            cell,
            self.status("search", **scope),
            self.status("latency", **scope),
            windows,
            trials,
            search,
            self._sound(lambda: LatencyRun.read_all(place / LATENCY)) or [],
            _last_runs(read_jsonl(place / "latency-trials.jsonl")),
        )

    def _artifact(self, status: Status, kind: str, key: Callable[[Store, Benchmark], str]) -> Artifact | None:
        """Artifact that the stage recorded; without a record, the one an earlier run made from the same inputs."""
        if status.outcome in ("failed", "unfinished"):
            return None
        recorded = status.record.outcome.get("key") if status.record else None
        try:
            return self._sound(lambda: self.store.recall(kind, recorded or key(self.store, self.benchmark)))
        except (UserError, ValueError):  # such as sources that are gone, of which the key is made
            return None

    def _read(self, path: Path) -> Json | None:
        return self._sound(lambda: read_record(path, AGAIN))

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


def _last_search(*files: list[Json], plan: str | None) -> list[list[Json]]:
    """Keeps the lines of one search in each file: changed settings start a new search in the same files.

    plan: identifies the search whose answer the page shows. Without an answer it is the last search; a search begins
    with windows, so the last line of the first file that has lines identifies it.
    """
    last = plan or next((lines[-1].get("plan") for lines in files if lines), None)
    return [[line for line in lines if line.get("plan") == last] for lines in files]


def _last_runs(trials: list[Json]) -> list[Json]:
    """Keeps the last run at each fraction: a retried stage measures every fraction again into the same file."""
    return list({trial["fraction"]: trial for trial in trials if "fraction" in trial}.values())


def load_of(run: LatencyRun) -> str:
    """Names the load of a latency run."""
    return load_text(run.fraction, run.rate_events_per_s, run.common)


def load_text(fraction: float, rate: float, common: bool) -> str:
    """Names a load: a fraction of the cell's rate, or the events/s that all cells were offered."""
    return f"{rate:,.0f}\u00a0/s".replace(",", "\u202f") if common else f"{100 * fraction:.4g}\u202f%"


def one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def expected(records: Records) -> Iterable[Status]:
    """Yields the status of every stage that the benchmark asks for, in the order of the stage table."""
    yield records.status("ingest")
    yield records.status("analyze")
    for stream in records.streams:
        yield stream.generate
        yield stream.validate
    yield from records.suites
    for cell in records.cells:
        yield cell.search_status
        yield cell.latency_status


def _check(item: Json) -> Check:
    observed = item.get("observed")
    if isinstance(observed, dict):
        observed = ", ".join(f"{name} {value}" for name, value in observed.items())
    shown = "" if observed is None else str(observed)
    return Check(str(item.get("name") or "unnamed"), str(item.get("note") or ""), item.get("success"), shown)
