"""The life of a job, which lasts for one trial or for several, and its part in one of them."""

from __future__ import annotations

import logging
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NotRequired

from pydantic import ValidationError

from streamgauge.base import variables
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import write_json
from streamgauge.base.units import PS, Tick
from streamgauge.bench.driver.replay import LARGEST
from streamgauge.bench.driver.system import Fault, NotStruck, TrialSetup
from streamgauge.bench.engines.job.following import Follower, nothing_taken
from streamgauge.bench.engines.job.running import Command, Publishing
from streamgauge.bench.engines.job.settings import JobSettings
from streamgauge.bench.engines.job.templates import FAULT_S, Places, filled
from streamgauge.bench.publish.answers import Output
from streamgauge.bench.publish.moving import After
from streamgauge.bench.publish.progress import Progress
from streamgauge.bench.publish.publisher import LinkFigures
from streamgauge.records.trial import SystemFigures
from streamgauge.streams.kafka.records import Form

#: a share of looks at which the job waited for its link, above which a trial says nothing about the job
MOST_STARVED = 0.25
#: beside the logs of a job whose network is cut: its places, with which it is mended
CUT = "cut.json"
_LOOK_S = 0.02
log = logging.getLogger("streamgauge")


class JobFigures(SystemFigures):
    """Figures of a job's trial. answers: the comparison of its answers; log: of the job."""

    link: NotRequired[LinkFigures]
    answers: NotRequired[dict[str, object]]
    log: NotRequired[str]


@dataclass
class Job:
    """A job, and what it has taken in the trials that have ended."""

    system: JobSettings
    places: Places
    form: Form  # form of its input's records
    folder: Path | None  # folder of a job that is started once, for its checkpoint and the rows of all its trials
    logs: Path  # folder of what its commands print
    command: Command = field(init=False)
    trials: list[Path] = field(default_factory=list)  # folders of the rows of the trials that have ended
    latest: tuple[int, int] = (0, 0)  # latest event time in ticks, and largest seq, of all those rows
    copies: int = 0  # of answers, in these trials
    struck: set[str] = field(default_factory=set)  # faults that were brought about; `cut` goes once it is mended
    _counted_s: float = 0.0

    def start(self) -> None:
        """Starts the command, or the one that is declared for a job that was killed. Raises UserError."""
        self._counted_s = 0.0
        again = self.system.faults.start if "kill" in self.struck else None
        self.command = self._begun(*(("faults.start", again) if again else ("command", self.system.command)))

    def _begun(self, key: str, words: Sequence[str], name: str = "") -> Command:
        program, place = [filled(part, self.places) for part in words], Path(self.system.directory or ".").absolute()
        try:
            environment = {
                one: filled(str(variables.filled(text, f"environment.{one}")), self.places)
                for one, text in self.system.environment.items()
            }
            return Command(program, environment, place, self.logs / f"{self.places.group}{name}.log", key)
        except UserError as problem:
            raise NotStruck(str(problem)) from None

    @property
    def goes_on(self) -> bool:
        """True if the job may take part in the next trial.

        It was not rescaled, its network is not cut, and half of the times that fit into 64 bits are left.
        """
        is_same = not self.struck & {"rescale", "cut"} and self.latest[0] <= LARGEST // 2
        return self.system.started == "once" and self.command.exit_code() is None and is_same

    def strike(self, fault: Fault) -> None:
        """Brings a fault about: by the command that is declared for it, and a kill by SIGKILL. Raises NotStruck."""
        self.struck.add(fault)
        if fault == "cut":
            write_json(self.logs / CUT, self.places.model_dump())
        if fault in self.system.faults.commands:
            self._run(fault)
        if fault == "kill":  # also what the command left: it would end well, and lose nothing
            self.command.kill("")

    def mended(self) -> bool:
        """Mends its network; returns False if that was not cut. Raises NotStruck."""
        if "cut" not in self.struck:
            return False
        self._run("heal")
        self.struck.discard("cut")
        (self.logs / CUT).unlink(missing_ok=True)
        return True

    def _run(self, key: str) -> None:
        """Runs the command of a fault to its end; nothing that it has started stays. Raises NotStruck."""
        until = time.monotonic() + FAULT_S
        command = self._begun(f"faults.{key}", self.system.faults.commands[key], f"-{key}")
        try:
            while (code := command.exit_code()) is None:
                if time.monotonic() > until:
                    raise NotStruck(f"faults.{key}: it had not ended after {FAULT_S:g} s; {command.last_words()}")
                time.sleep(_LOOK_S)
            if code:
                raise NotStruck(f"faults.{key}: it ended with {code}; {command.last_words()}")
        finally:
            command.end()

    def sign(self, progress: Progress) -> Callable[[], bool]:
        """Returns a function that tells whether the job waits for rows."""
        ready, since, command = self.system.ready, time.monotonic(), self.command
        if ready is None:
            return progress.begun
        if (wait_s := ready.seconds) is not None:
            return lambda: time.monotonic() - since > wait_s
        pattern = re.compile(str(ready.log), re.MULTILINE)
        return lambda: pattern.search(command.output()) is not None

    def after(self, gap_s: float, tick: Tick) -> After | None:
        """Returns what the next trial's rows follow, None for the first. The gap is at least a day, and gap_s."""
        gap = max(PS["d"], round(gap_s * PS["s"])) // PS[tick]
        return After(*self.latest, gap) if self.trials else None

    def has_taken(self, rows: Path, latest: Sequence[int]) -> None:
        """Notes a trial that has ended well."""
        self.trials.append(rows)
        self.latest = latest[0], latest[1]

    def cpu_seconds(self) -> float:
        """CPU seconds of this trial, after which the next one begins."""
        total = self.command.cpu_seconds()
        since, self._counted_s = total - self._counted_s, total
        return since

    def end(self) -> None:
        """Mends its network, ends all its processes, and removes its folder."""
        try:
            self.mended()
        except NotStruck as problem:
            log.warning("the network of the job %s may still be cut: %s", self.places.group, problem)
        self.command.end()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def mend_left(system: JobSettings, logs: Path) -> None:
    """Mends a network that is still cut, in this process or by one that was killed. Raises NotStruck while it is."""
    file = logs / CUT
    if not file.exists():
        return
    if "heal" not in system.faults.commands:
        log.warning("%s: this network was left cut, and no faults.heal is declared any more; see to it yourself", file)
        file.unlink()
        return
    try:
        places = Places.model_validate_json(file.read_bytes())
        Job(system, places, system.form("ns"), None, logs, struck={"cut"}).mended()
    except (NotStruck, ValidationError) as problem:
        why = problem if isinstance(problem, NotStruck) else "found no values of places in it"
        raise NotStruck(
            f"systems.{system.name}: the network is still cut: {why}; once it is mended by hand, remove {file}"
        ) from None


@dataclass
class Trial:
    """A job in a trial, with the processes and threads that belong to the trial."""

    setup: TrialSetup
    job: Job
    rows: Path  # folder of the rows that are offered
    progress: Progress
    publishing: Publishing
    follower: Follower

    def ended(self, code: int) -> str:
        """Returns what is known of a job that has ended, in one line."""
        command = self.job.command
        sentinel = (
            "; the stream had ended: does the job refuse the sentinel? the key sentinel sets its values"
            if self.follower.over
            else ""
        )
        return f"the job ended with {code}: {command.last_line()}{sentinel}; its log: {command.log}"

    def unended(self, output: Output) -> str:
        """Names what of the job has not ended, and may bring answers; empty if nothing is known."""
        if not self.progress.reached().whole:
            return "the job's last batch"
        return "a transaction of the job, which hides its answers," if output.is_open() else ""

    def nothing(self) -> str | None:
        """Returns what is known of a job that has taken none of the rows that were there; None if it has."""
        if self.setup.closed or self.follower.rows or not sum(self.publishing.published):
            return None
        return nothing_taken(self.progress, self.job.command)

    def invalid(self, link: LinkFigures, nothing: str | None) -> str | None:
        """Reason why the trial says nothing about the job, by the link's figures; None if there is none."""
        if self.setup.closed or nothing is not None:
            return nothing
        if link["starved_share"] > MOST_STARVED:
            return (
                f"the link limited this trial: in {link['starved_share']:.0%} of the samples the job had read all that "
                "publisher and broker had handed on, though more was offered"
            )
        if link.get("filled_s") is None and self.follower.rows:
            return (
                "the link limited this trial: publisher and broker did not catch up with the backlog of its start; "
                "lower the rate, or give them CPUs or a host of their own"
            )
        return None
