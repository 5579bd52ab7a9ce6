"""The adapter for a job of the user's own: publishes the events to a topic, and reads the answers from another one."""

from __future__ import annotations

import math
import re
import time
import uuid
from pathlib import Path
from typing import ClassVar

from streamgauge.base.errors import UserError
from streamgauge.base.histogram import Histogram
from streamgauge.base.units import PS
from streamgauge.bench.driver.client import Connection, WireError, of_each
from streamgauge.bench.driver.observed import summary
from streamgauge.bench.driver.system import Capabilities, Fault, NotStruck, TrialSetup
from streamgauge.bench.engines.job.comparing import STREAMS, compared, late_rules
from streamgauge.bench.engines.job.following import Follower
from streamgauge.bench.engines.job.life import Job, JobFigures, Trial, mend_left
from streamgauge.bench.engines.job.own_topics import OwnTopics, registered, tried
from streamgauge.bench.engines.job.running import Command, Publishing
from streamgauge.bench.engines.job.settings import JobSettings
from streamgauge.bench.engines.job.templates import PLACES, Places, filled
from streamgauge.bench.engines.shares import InSession
from streamgauge.bench.publish.answers import Output
from streamgauge.bench.publish.progress import Checkpoint, Group, Progress
from streamgauge.bench.publish.publisher import Task
from streamgauge.bench.publish.rights import try_rights
from streamgauge.bench.publish.warming import KEPT_ROWS, Warming, begin_of, laps_after
from streamgauge.bench.workloads import Spec
from streamgauge.records.rules import Rules
from streamgauge.streams.kafka.clients import Access, Topics, ends
from streamgauge.streams.kafka.registry import Registry
from streamgauge.streams.kafka.values import Decoder, Json, decoder_of

READY_S = 30.0
LOOK_S = 0.1


class JobSystem(InSession):
    """A job of the user's; driver/system.py says what each method does."""

    #: False for a link that may limit a trial
    link_is_checked: ClassVar[bool] = True
    late_rules = STREAMS

    def __init__(self, system: JobSettings, work: Path) -> None:
        super().__init__(system, work)
        self.capabilities = Capabilities(
            continuous=system.progress.checkpoint is None,  # which tells of each micro-batch; a group only now and then
            lasts=False, pins=True, cuts_itself=True, faults=system.faults.taken, spared=system.faults.spared,
        )  # fmt: skip
        self._system = system
        self._access = Access(system.bootstrap, system.security)
        self._topics: Topics | None = None
        self._registry: Registry | None = None
        self._decoder: Decoder = Json()  # of answers
        self._trial: Trial | None = None
        self._job: Job | None = None  # that runs
        self._own: OwnTopics | None = None
        self._cpu = 0.0  # of earlier trials
        self._link_failed = False  # the reason of a failure is the publisher, the broker or the driver, not the job
        self._pinned = False  # a job that starts is pinned at once
        self._kept = work / "begin"  # of the stream, as a closed loop keeps it
        self._logs = work.absolute() / "logs"  # of all jobs that were started, whole

    @property
    def session(self) -> Command | None:
        return None if self._job is None else self._job.command

    def rules(self, spec: Spec) -> Rules:
        return late_rules(self._system, spec)

    def start(self) -> None:
        self.failure = None
        mend_left(self._system, self._logs)  # before the broker is tried, which it may hide
        self.check()
        assert self._topics is not None
        self._own = self._own or OwnTopics(self._topics, self._work / "topics.json", self._registry)
        self._own.remove()  # what a process left behind that was killed, or whose broker was away

    def check(self) -> None:
        """Tries the broker and the rights on it, so that a mistake is found before anything is measured."""
        self._system.check_installed()
        try:
            self._topics = Topics(self._access)
            self._topics.check()
            probe = f"streamgauge-{uuid.uuid4().hex[:12]}-probe"
            group = self._system.progress.group
            group = None if group is None else filled(group, Places(**dict.fromkeys(PLACES, probe)))
            try_rights(self._access, self._topics, probe, group, by_event=self._system.since_1970)
            self._registry = tried(self._system.registry, probe)
            answer = self._system.answer
            self._decoder = decoder_of(answer.format, self._system.registry, answer.writer_schema)
        except UserError as problem:
            raise UserError(f"systems.{self.name}.{problem}") from None

    def begin_trial(self, setup: TrialSetup) -> None:
        """Makes the topics, and starts publisher and command; a job that does not begin invalidates this trial only."""
        self._end(keep=self._goes_on and self._trial is None and not setup.closed)
        self.failure, self._link_failed = None, False
        setup.work.mkdir(parents=True, exist_ok=True)
        try:
            mend_left(self._system, self._logs)  # nothing is measured behind a network that is still cut
            self._trial = self._begin(setup)
        except UserError as problem:
            self.failure = self._access.masked(f"the job did not begin: {problem}")
            self._end()

    @property
    def _goes_on(self) -> bool:
        """True if the job that runs may take part in the next trial."""
        return self._job is not None and self._job.goes_on and self.failure is None

    def end_trial(self, timeout_s: float) -> JobFigures:
        """Returns what the job used, how its link did, and how its answers compare."""
        trial = self._trial
        if trial is None:
            return {"drained": False, "failure": self.failure}
        deadline, keep = time.monotonic() + timeout_s, False
        output: Output | None = None
        figures: JobFigures = {}
        try:
            drained = self._drained(trial)
            if drained and not trial.setup.closed:
                output = Output(self._access, trial.job.places.output, trial.setup.queues)
                quiet_s = self._system.answer.quiet.seconds
                output.wait_until_quiet(quiet_s, timeout_s + quiet_s)
                while (unended := trial.unended(output)) and time.monotonic() < deadline:
                    time.sleep(LOOK_S)
                    output.wait_until_quiet(quiet_s, timeout_s + quiet_s)
                if unended:
                    raise UserError(f"{unended} had not ended {timeout_s:.0f} s after the job took the last row")
            keep = drained and not trial.setup.closed and self._goes_on
            figures = self._ended(trial, keep=keep)
            figures["drained"] = drained
            if output is not None and self.failure is None:
                answer, topic = self._system.answer, output.read()
                spec = Spec.of(trial.setup.workload, trial.setup.columns, whole=True)
                rules = None if answer.grace is None else self.rules(spec)
                figures.update(compared(answer, self._decoder, trial, topic, figures["link"], rules))
            # the next trial's answers are compared together with these
            check = figures.get("check")
            right = self.failure is None and not (check and check["wrong"])
            if keep := keep and right and "latest" in figures["link"]:
                trial.job.has_taken(trial.rows, figures["link"]["latest"])
        except (UserError, WireError) as problem:
            self.failure = self.failure or self._access.masked(str(problem))
            keep, figures = False, figures or self._ended(trial)
            figures["drained"] = False
        finally:
            if output is not None:
                output.close()
            self._end(keep=keep)
        figures["failure"] = self.failure
        if self._link_failed:
            figures["invalid"] = self.failure
        figures["software"] = {"job": self._system.version} if self._system.version else {}
        return figures

    def alive(self) -> bool:
        trial = self._trial
        if self.failure is None and trial is not None:
            if (code := trial.job.command.exit_code()) is not None:
                self.failure = self._access.masked(trial.ended(code))
            else:
                of_link = trial.publishing.failure()
                failure = of_link or trial.follower.failure
                self.failure = failure and self._access.masked(failure)
                self._link_failed = bool(of_link or (failure and not trial.follower.blames_job))
        return self.failure is None

    def handed_on(self) -> bool:
        return self._trial is None or self._trial.publishing.filled

    def pin(self) -> None:
        self._pinned = True
        super().pin()

    def strike(self, fault: Fault) -> None:
        """Brings the fault about as the settings declare; a kill also kills all processes of the command."""
        if self._job is not None:
            try:
                self._job.strike(fault)
            except NotStruck as problem:  # it has what a command printed
                raise NotStruck(self._access.masked(str(problem))) from None

    def rescale(self) -> None:
        self.strike("rescale")

    def resume(self) -> None:
        """Mends the network, or starts the command again: it goes on from what it has committed in group and folder."""
        assert self._job is not None, "begin a trial first"
        if not self._job.mended():
            self._cpu += self._job.command.cpu_seconds()
            self._job.command.end()
            self._start(self._job)

    def cpu_seconds(self) -> float:
        return self._cpu + (super().cpu_seconds() or 0.0)

    def stop(self) -> None:
        self._end()

    def _begin(self, setup: TrialSetup) -> Trial:
        begun, system, closed, queues = self._job, self._system, setup.closed, setup.queues
        if begun is not None:
            begun.command.forget_peak()
        job = begun or self._named(setup, queues)
        rows = setup.work.absolute() if job.folder is None else job.folder / f"rows-{len(job.trials)}"
        rows.mkdir(parents=True, exist_ok=True)
        base = ends(self._access, job.places.input, queues) if begun else None
        publishing, progress = self._input(setup, job, rows)
        if begun is None:
            try:
                self._start(job)
            except UserError:
                publishing.end()
                raise
        warming = None
        if not closed and begun is None and system.warm.ps and system.format != "line":
            clock = PS["ms"] // PS[setup.tick] if system.since_1970 else None
            kept = begin_of(self._kept, queues, setup.tick, laps_after(setup), clock)
            about = (self._access, job.places.input, setup.attempt, job.form)
            if kept:
                rate, is_batched = setup.rate_events_per_s, not self.capabilities.continuous
                warming = Warming(*about, kept, system.warm.seconds, rate=rate, is_batched=is_batched)
        sign = job.sign(progress) if begun is None else progress.begun
        ready_s = READY_S if system.ready is None else math.inf
        closed = closed and self.link_is_checked
        follower = Follower(setup, progress, publishing, sign, ready_s, job.command, closed, warming, rows, base)
        return Trial(setup, job, rows, progress, publishing, follower)

    def _start(self, job: Job) -> None:
        """Starts the job's command on the CPUs that it is given. Raises UserError."""
        job.start()
        self._job = job
        if self._pinned:
            self.pin()
        self._given.begin(job.command)

    def _named(self, setup: TrialSetup, queues: int) -> Job:
        """Names a new job, and makes its topics."""
        assert self._own is not None, "start first"
        own = self._own
        # the end of an attempt's name is its time, so that what is left of a long one still differs
        name = "streamgauge-" + re.sub(r"[^A-Za-z0-9._-]", "-", setup.attempt)[-150:]
        folder = self._work.absolute() / name if self._system.started == "once" else None
        work = folder or setup.work.absolute()
        work.mkdir(parents=True, exist_ok=True)
        places = Places(
            bootstrap=self._system.bootstrap, input=self._make_input(own, name, queues), output=f"{name}-out",
            group=name, attempt=setup.attempt, work=str(work), version=self._system.version or "",
        )  # fmt: skip
        own.make(places.output, queues)
        if self._system.progress.group is not None:
            own.expect(filled(self._system.progress.group, places))
        form = registered(self._registry, self._system.form(setup.tick), setup, places.input)
        return Job(self._system, places, form, folder, self._logs)

    def _make_input(self, own: OwnTopics, name: str, queues: int) -> str:
        """Makes the input topic of a job; returns its name."""
        own.make(f"{name}-in", queues, by_event=self._system.since_1970)
        if self._system.since_1970:
            own.make(f"{name}-clock", 1)
        return f"{name}-in"

    def _input(self, setup: TrialSetup, job: Job, rows: Path) -> tuple[Publishing, Progress]:
        """Returns who fills the input, and who tells what was taken from it. rows: folder for what is offered."""
        system, topic, queues = self._system, job.places.input, setup.queues
        assert self._topics is not None, "start first"
        group, folder = system.progress.group, system.progress.checkpoint
        if folder is not None:
            place = Path(system.directory or ".") / filled(folder, job.places)
            progress: Progress = Checkpoint(place, topic)
        else:
            progress = Group(self._access, self._topics, filled(str(group), job.places), topic, queues)
        closed, lateness = setup.closed, system.answer.lateness
        spec = Spec.of(setup.workload, setup.columns, whole=True)
        # windows with the sentinel are of this trial alone
        gap_s = max(0.0 if lateness is None else lateness.seconds, spec.beyond_us(self.rules(spec)) / 1e6)
        self._kept.mkdir(parents=True, exist_ok=True)
        task = Task(
            setup.attempt, setup.endpoints, system.bootstrap, system.security, topic, job.form,
            str(self._kept if closed else rows), KEPT_ROWS if closed else None,
            job.after(gap_s, setup.tick),
            f"{job.places.group}-clock" if system.since_1970 else None,
        )  # fmt: skip
        return Publishing(task.to_json()), progress

    def _drained(self, trial: Trial) -> bool:
        """True if every row was committed."""
        if not self.alive():
            return False
        for status in of_each(trial.setup.endpoints, trial.setup.attempt, Connection.status):
            if status["committed"] != status["offered"] or not status["finished"]:
                return False
            if self._system.format == "line" and status["loops"] > 1:
                raise UserError(
                    "the stream is too short for this trial: it is replayed several times, and lines cannot take a "
                    "later time; use format json, a longer stream, or fewer seconds"
                )
        return True

    def _ended(self, trial: Trial, *, keep: bool = False) -> JobFigures:
        """Ends the trial's processes, but for a job that is kept; returns their figures."""
        self.alive()  # looks for a failure before the processes are ended
        trial.follower.stop()
        nothing = None if self.failure else trial.nothing()
        trial.progress.close()
        cpu_seconds, rss_bytes = round(trial.job.cpu_seconds(), 3), trial.job.command.peak_rss_bytes()
        if not keep:
            self._end_job()
        link = trial.publishing.end()
        slip = Histogram.from_dict(link.pop("slip")) if "slip" in link else Histogram()
        link["starved_share"] = round(trial.follower.starving.share, 4)
        self._trial, unjudged = None, self.failure is not None or not self.link_is_checked
        reason = None if unjudged else trial.invalid(link, nothing)
        return {
            "cpu_seconds": cpu_seconds,
            "rss_bytes": rss_bytes,
            "link": link,
            "link_slip_ns": summary(slip),
            "invalid": reason and self._access.masked(reason),
            "log": str(trial.job.command.log),
        }

    def _end(self, *, keep: bool = False) -> None:
        """Ends all that runs for a trial, and removes what was made for it; the job and its topics may be kept."""
        trial, self._trial = self._trial, None
        if trial is not None:
            trial.follower.stop()
            trial.publishing.end()
            trial.progress.close()
        if not keep:
            self._end_job()
            if self._own is not None:
                self._own.remove()

    def _end_job(self) -> None:
        job, self._job = self._job, None
        if job is not None:
            job.end()
            self._cpu += job.command.cpu_seconds()
