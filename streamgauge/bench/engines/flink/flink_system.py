"""The adapter for Flink: a standalone cluster, warm over many trials, with a job for each."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from streamgauge.base.errors import UserError
from streamgauge.base.units import PS
from streamgauge.bench.driver.client import Connection, WireError, of_each
from streamgauge.bench.driver.system import Answering, Capabilities, Fault, TrialSetup
from streamgauge.bench.engines.flink import queries
from streamgauge.bench.engines.flink.cluster import FRESH_MS, Cluster
from streamgauge.bench.engines.flink.settings import FlinkSettings
from streamgauge.bench.engines.processes import Led
from streamgauge.bench.engines.shares import InSession
from streamgauge.bench.oracle.checksum import salt
from streamgauge.bench.workloads import Spec, find
from streamgauge.records.rules import Rules
from streamgauge.records.trial import Stretch, SystemFigures

BEGIN_SECONDS = 60.0
LOOK_SECONDS = 0.5  # looking costs CPU on the machine that is measured
POLL_SECONDS = 0.05
REPORT_SECONDS = 3.0  # for the reports of the last checkpoint, if the next one is longer away
RUNNING = ("RUNNING", "RESTARTING", "CREATED", "INITIALIZING")
_JOINS_NOTHING = (
    "flink's interval join takes a watermark before 1970 for 1970, and so joins no event before that; choose later "
    "event times, or another query"
)


class FlinkSystem(InSession, Answering):
    """Flink under test; driver/system.py says what each method does."""

    capabilities = Capabilities(
        continuous=True, pins=True, faults=frozenset({"kill", "restart", "cut", "rescale", "quota"})
    )
    late_rules = queries.ANY_QUERY

    def __init__(self, system: FlinkSettings, work: Path) -> None:
        super().__init__(system, work)
        self._system = system
        self._cluster: Cluster | None = None
        self._job, self._parallelism = "", system.parallelism
        self._setup: TrialSetup | None = None
        self._cpu, self._next_look, self._starts = 0.0, 0.0, 0
        self._is_resumed = False  # in this trial

    @property
    def session(self) -> Led | None:
        return None if self._cluster is None else self._cluster.session

    def rules(self, spec: Spec) -> Rules:
        return queries.rules(spec)

    def start(self) -> None:
        self.failure = None
        self._starts += 1
        self._cluster = Cluster(self._system, self._work / f"cluster-{self._starts}")
        self._given.begin(self._cluster.session)

    def begin_trial(self, setup: TrialSetup) -> None:
        """Submits the trial's job; a job that does not begin invalidates this trial only.

        Raises UserError for a query that the Flink part does not have.
        """
        spec = Spec.of(setup.workload, setup.columns, whole=True)
        queries.check(self.name, spec)
        assert self._cluster is not None, "start first"
        setup.work.mkdir(parents=True, exist_ok=True)
        self.failure, self._job, self._setup, self._is_resumed = None, "", setup, False
        self._parallelism = self._system.parallelism
        self._cpu = self._cluster.session.cpu_seconds()
        self._cluster.session.forget_peak()
        try:
            self._job = self._cluster.run(argument(spec, setup, self.keeps_answer), self._parallelism)
            self._wait_until_running()
            of_each(setup.endpoints, setup.attempt, lambda wire: wire.ready(setup.attempt))
        except (UserError, WireError) as problem:
            self.failure = self.failure or f"the job did not begin: {problem}"

    def end_trial(self, timeout_s: float) -> SystemFigures:
        """Returns the account of what was read under which watermark, cpu_seconds and rss_bytes (the peak)."""
        cluster, setup = self._cluster, self._setup
        if cluster is None or setup is None or not self._job:
            return {"stretches": [], "drained": False, "failure": self.failure}
        drained = self._drained(setup, timeout_s)
        figures: SystemFigures = {
            "state_bytes": cluster.state_bytes(self._job),
            "cpu_seconds": round(cluster.session.cpu_seconds() - self._cpu, 3),
            "rss_bytes": cluster.session.peak_rss_bytes(),
            "drained": drained,
        }
        if drained:
            self._await_reports(cluster)
        if drained and self.failure is None and queries.drops_in_sql(setup.workload.query):
            try:  # a counter that died with its cluster is not known
                figures["late_dropped"] = None if self._is_resumed else cluster.late_dropped(self._job)
            except UserError as problem:  # it has died since: the trial is invalid, and no setting at fault
                self.failure = self.failure or str(problem)
        with suppress(UserError):
            figures["software"] = {"flink": cluster.version()}
        with suppress(UserError):
            cluster.cancel(self._job)
        figures["stretches"] = stretches = self._stretches(setup)
        delay_ms, marks = setup.workload.watermark.ps // PS["ms"], [one["watermark_ms"] for one in stretches]
        early = any(mark is not None and mark < -delay_ms for mark in marks)
        joins_nothing = _JOINS_NOTHING if early and queries.joins_in_sql(setup.workload.query) else None
        self._job = ""
        figures["failure"] = self.failure or joins_nothing
        return figures

    def answer(self) -> dict[str, list[Any]]:
        """The rows of the last trial's answer by column, if `keeps_answer` was set before it began."""
        assert self._setup is not None
        names = queries.results(Spec.of(self._setup.workload, self._setup.columns, whole=True))
        files = self._setup.work.glob("rows-*.json")
        rows = [row for file in files for row in json.loads(file.read_text())]
        return {name: [row[place] for row in rows] for place, name in enumerate(names)}

    def strike(self, fault: Fault) -> None:
        """Kills all processes of Flink, or the task manager, which is started again."""
        if self.session is not None:
            self.session.kill("TaskManagerRunner" if fault == "restart" else "")

    def resume(self) -> None:
        """Starts a new cluster, and the job from the last checkpoint of the old one."""
        assert self._cluster is not None, "begin a trial first"
        saved = self._cluster.last_checkpoint(self._job)
        self.stop()
        self.start()
        self._cpu = 0.0
        self._go_on(saved)

    def rescale(self) -> None:
        """Stops the job with a savepoint, and starts it from there; its slots are enough for twice the parallelism."""
        assert self._cluster is not None, "begin a trial first"
        saved = self._cluster.stop_job(self._job)
        self._parallelism *= 2
        self._go_on(saved)

    def _go_on(self, saved: str | None) -> None:
        """Starts the trial's job again, from that place."""
        setup, self._is_resumed, self._job = self._setup, True, ""  # the job that was stopped has not failed
        assert setup is not None, "begin a trial first"
        assert self._cluster is not None, "begin a trial first"
        spec = Spec.of(setup.workload, setup.columns, whole=True)
        self._job = self._cluster.run(argument(spec, setup, self.keeps_answer), self._parallelism, saved)

    def vitals(self) -> dict[str, float]:
        """Returns memory, files, heap of the task managers, and the state in the last checkpoint."""
        return {**super().vitals(), **({} if self._cluster is None else self._cluster.vitals(self._job))}

    def alive(self) -> bool:
        if self.failure is None and self._cluster is None:
            self.failure = "the system died: it was not started"
        if self.failure is None and self._cluster is not None and time.monotonic() > self._next_look:
            self._next_look = time.monotonic() + LOOK_SECONDS
            if (code := self._cluster.session.exit_code()) is not None:
                self.failure = f"the system died: exit code {code}"
            elif self._job:
                self._look(self._cluster)
        return self.failure is None

    def stop(self) -> None:
        cluster, self._cluster, self._job = self._cluster, None, ""
        if cluster is not None:
            cluster.stop()

    def _look(self, cluster: Cluster) -> None:
        try:
            if cluster.job(self._job)["state"] not in RUNNING:
                self.failure = f"the job failed: {cluster.reason(self._job)}"
        except UserError as problem:
            self.failure = f"the system died: {problem}"

    def _wait_until_running(self) -> None:
        """Waits until every operator runs. Raises UserError with the reason if one does not."""
        assert self._cluster is not None
        deadline = time.monotonic() + BEGIN_SECONDS
        while time.monotonic() < deadline:
            job = self._cluster.job(self._job)
            states = {vertex["status"] for vertex in job["vertices"]}
            if job["state"] not in RUNNING:
                raise UserError(self._cluster.reason(self._job))
            if states == {"RUNNING"}:
                return
            time.sleep(POLL_SECONDS)
        raise UserError(f"its operators did not run within {BEGIN_SECONDS:.0f} s")

    def _drained(self, setup: TrialSetup, timeout_s: float) -> bool:
        """True once a checkpoint holds every row, so that all is committed."""
        deadline = time.monotonic() + timeout_s
        while self.alive():
            try:
                states = of_each(setup.endpoints, setup.attempt, Connection.status)
                if all(state["committed"] == state["offered"] for state in states):
                    return True
            except WireError as problem:
                self.failure = self.failure or str(problem)
                return False
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return False

    def _await_reports(self, cluster: Cluster) -> None:
        """Waits for another checkpoint: a task reports what one holds before it takes part in the next."""
        time.sleep(3 * FRESH_MS / 1000)  # the count may be as old as that
        with suppress(UserError):
            completed, deadline = cluster.checkpoints(self._job), time.monotonic() + REPORT_SECONDS
            while cluster.checkpoints(self._job) == completed and time.monotonic() < deadline:
                time.sleep(2 * POLL_SECONDS)

    def _stretches(self, setup: TrialSetup) -> list[Stretch]:
        """Rows read under one watermark, in their order; [] if several readers shared the queues: no order is known."""
        files = list(setup.work.glob("watermarks-*.jsonl"))
        queues = sum(endpoint.partitions for endpoint in setup.endpoints)
        if find(setup.workload.query).late == "never":
            files = []  # no operator looks at a watermark
        elif self._parallelism > 1 and queues > 1:
            return []
        streams = find(setup.workload.query).streams  # of which each is the whole stream
        marks = {number: mark for file in files for number, mark in _marks(file).items()}
        stretches: list[Stretch] = []
        watermark_ms: int | None = None
        for number in sorted(marks):
            stretches.append({"ends": [marks[number]["rows"]] * streams, "watermark_ms": watermark_ms})
            watermark_ms = marks[number]["watermarkMs"]
        everything = {str(queue): 2**62 for queue in range(queues)}
        return [*stretches, {"ends": [everything] * streams, "watermark_ms": watermark_ms}]


def _marks(account: Path) -> dict[int, Any]:
    """Watermarks by number. After a crash one may stand there twice, and torn before it stands there whole."""
    marks = {}
    for line in account.read_text().splitlines():
        with suppress(ValueError):
            mark = json.loads(line)
            marks[int(mark["number"])] = mark
    return marks


def argument(spec: Spec, setup: TrialSetup, keeps_answer: bool = False) -> dict[str, object]:
    """Settings of one job, as the Java part reads them (Spec.java)."""
    names, results = queries.columns(spec), queries.results(spec)
    return {
        "attempt": setup.attempt,
        "query": spec.query,
        "code": queries.answer(spec.query).code,
        "sql": queries.sql(spec),
        "in_time": queries.in_time(spec),
        "reads": find(spec.query).reads,
        "keeps_rows": keeps_answer,
        "key": spec.key,
        "value": spec.value,
        "window_us": spec.window_us,
        "slide_us": spec.step_us,
        "offset_us": spec.offset_us,
        "watermark_ms": spec.watermark_ms,
        "mark": spec.mark,
        "top": spec.top,
        "columns": names,
        "own": find(spec.query).columns,
        "types": [setup.columns[name] for name in names],
        "results": results,
        "salts": [str(salt(name)) for name in results],
        "endpoints": [asdict(endpoint) for endpoint in setup.endpoints],
        "account": str(setup.work.absolute()),
    }
