"""A search of a ready cell: it carries out the steps that `next_step` asks for, and records each one at once."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import numpy as np

from streamgauge.bench.driver.ceiling import ceiling
from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.measure.measured import application_of, software_of
from streamgauge.bench.measure.yardstick import Yardstick, moved, steal
from streamgauge.bench.measurements.search.record import Doubt, ProcessEstimate, SearchAnswer
from streamgauge.bench.search.ladder import warm_up_step
from streamgauge.bench.search.loop import run_turn
from streamgauge.bench.search.steps import Done, Hold, Recover
from streamgauge.bench.search.verdict import is_clear
from streamgauge.config import Search
from streamgauge.records.measurement import Ceiling, Limits, Measurement, TrialRecord, Verdict, Window
from streamgauge.records.trial import TRIALS, WINDOWS, MeasuredTrial, MeasuredWindow

log = logging.getLogger("streamgauge")
#: above this part of the driver's own ceiling, a rate would measure the driver
CEILING_SHARE = 0.7
#: a window is measured once more if the machine's speed changed by more around it, or if more CPU time was stolen
YARDSTICK_TOLERANCE, MOST_STEAL = 0.3, 0.1
Line = MeasuredWindow | MeasuredTrial


class _Head(TypedDict):
    number: int
    plan: str
    process: int
    limits: Limits


@dataclass
class Going:
    """State that searches in the same processes share: the process, the last line's number, and the limits."""

    process: int = 0
    life: int = 0  # which start of the system it is
    number: int = 0
    limits: Limits = field(default_factory=Limits)
    ceiling: Ceiling | None = None

    def known(self, lines: Sequence[Line]) -> None:
        """Goes on after these lines."""
        self.life = max((self.life, *(line.window.life for line in lines if isinstance(line, MeasuredWindow))))
        self.number = max((self.number, *(line.number for line in lines)))


class Searcher:
    """A search of a ready cell; it continues with the measurements that exist for the same settings."""

    def __init__(
        self, bench: ReadyCell, settings: Search, token: int, directory: Path | None = None, settings_key: str = "",
        going: Going | None = None,
    ) -> None:  # fmt: skip
        """Keeps no records if there is no directory. going: what it shares with searches in the same processes."""
        self._bench, self._settings, self._token = bench, settings, token
        self._directory, self._key = directory, settings_key
        #: of all measurements, in their order
        self.lines: list[Line] = [] if directory is None else earlier(directory, settings_key)
        self._going = going or Going()
        self._going.known(self.lines)
        self._yardstick = Yardstick(bench.settings.cpus) if settings.yardstick else None
        self._last_speed: float | None = None

    def run(self) -> SearchAnswer:
        """Measures until the answer stands; returns its record."""
        return self.answer(self.search())

    def search(self) -> Done:
        """Measures until the answer stands."""
        done = self.turn(self._settings.processes)
        assert done is not None
        return done

    def turn(self, process: int) -> Done | None:
        """Measures until that process is complete, and returns None; returns the answer once it stands."""
        done = run_turn(self._settings, self.prepare(), self.measure, measurements(self.lines), process)
        self._bench.end_loop()
        return done

    def prepare(self) -> Limits:
        """Measures the driver's ceiling, unless it is known, and returns the limits that follow."""
        alone = next((line.ceiling for line in self.lines if line.ceiling), None) or ceiling(self._bench.fleet)
        self._going.ceiling = alone
        if self.lines:
            self._going.limits = self.lines[0].limits  # as before the interruption
            log.info("resuming after %d measurements", len(self.lines))
        else:
            log.info("the driver alone delivers %.4g events/s", alone.events_per_s)
            self._going.limits = self._limits(alone)
        return self._going.limits

    def _limits(self, alone: Ceiling) -> Limits:
        most = float(f"{CEILING_SHARE * alone.events_per_s:.3g}")
        most = max(self._settings.min_rate, min(self._settings.max_rate, most))
        can = self._bench.capabilities
        pinned = bool(self._bench.settings.cpus) and can.pins
        return dataclasses.replace(self._bench.limits, max_rate=most, pinned=pinned, lasts=can.lasts)

    def measure(self, step: Hold | Recover) -> Measurement:
        """Measures a step, in a fresh process where none runs, and keeps its record."""
        if step.process != self._going.process and self._bench.running:
            self._bench.stop()
        fresh = not self._bench.running
        self._going.process = step.process
        if fresh:
            self._going.life += 1
            if self._settings.warmup_seconds and not (
                isinstance(step, Hold) and step.purpose in ("compile", "warm-up")
            ):
                # the process that was measured is gone: a new one begins with its warm-up
                known = measurements(self.lines)
                step = warm_up_step(self._settings, self._going.limits, known, step.process, ())
            if isinstance(step, Hold) and step.purpose == "pair":
                step = dataclasses.replace(step, purpose="ladder", block=0)  # its ladder comes before its blocks
        return self._window(step) if isinstance(step, Hold) else self._recovery(step)

    def _window(self, step: Hold) -> Window:
        log.info("process %d, %s: %s rows waiting, %s", step.process, step.purpose, f"{step.rows:,}", step.reason)
        cpus = self._bench.settings.cpus
        before, times = self._yard(step), steal(cpus)
        window = self._bench.window(step, token=self._token)
        stolen = steal(cpus).stolen_since(times)
        after = self._yard(step) if window.invalid is None else None
        pair = None if before is None or after is None else (before, after)
        invalid = window.invalid
        if pair and moved(*pair, YARDSTICK_TOLERANCE) and not self._is_second(step):
            invalid = f"the machine's speed changed from {pair[0]:,.0f} to {pair[1]:,.0f} units/s during the window"
        if invalid is None and stolen > MOST_STEAL and not self._is_second(step):
            invalid = f"{stolen:.0%} of the CPU time was stolen"
        window = dataclasses.replace(
            window,
            life=self._going.life,
            invalid=invalid,
            yardstick=pair,
            steal=None if math.isnan(stolen) else stolen,
        )
        self._keep(WINDOWS, MeasuredWindow(**self._head(), window=window, asked=step.reason))
        if window.invalid:
            log.info("  invalid: %s", window.invalid)
        else:
            count = len(window.batches)
            log.info(
                "  %d batches of %.0f rows took %.0f ms each: %.5g events/s",
                count, window.rows / count, 1000 * window.seconds / count, window.rows / window.seconds,
            )  # fmt: skip
        return window

    def _is_second(self, step: Hold) -> bool:
        """True if the same window was measured just before, and was invalid.

        On a machine that is never quiet, the second one counts; the report tells how much the yardstick moved.
        """
        last = self.lines[-1] if self.lines else None
        if not isinstance(last, MeasuredWindow) or last.window.invalid is None:
            return False
        return (last.window.held_rows, last.window.purpose) == (step.rows, step.purpose)

    def _yard(self, step: Hold) -> float | None:
        """The machine's speed while the system waits; None but for the ladder: it would disturb warm-ups and blocks."""
        if step.purpose != "ladder":
            self._last_speed = None
            return None
        if self._last_speed is None or not self._bench.paused:
            self._last_speed = self._speed()
        return self._last_speed

    def _speed(self) -> float | None:
        """The median of three runs of the yardstick: a moment's dip is not the machine's speed. None without one."""
        if self._yardstick is None:
            return None
        self._bench.pause()
        with self._bench.frozen():  # a paused query still polls
            return sorted(self._yardstick.run() for _ in range(3))[1]

    def _recovery(self, step: Recover) -> TrialRecord:
        self._last_speed = None  # it is of before the trial
        log.info("recovery at %.6g events/s, %.3g s behind: %s", step.rate_events_per_s, step.behind_s, step.reason)
        measured = self._bench.trial(
            step.rate_events_per_s, step.longest_s, token=self._token, behind_s=step.behind_s,
            batch_noise=step.noise, until=lambda so_far: is_clear(so_far, self._bench.plan.search),
        )  # fmt: skip
        seen = measured.observation
        lasted = max((s.at_s for s in (*seen.samples, *seen.clock)), default=0.0)
        record = TrialRecord(
            step.process, step.purpose, step.rate_events_per_s, lasted,
            Verdict(measured.outcome, measured.reason, measured.figures),
            seen.invalid is None, measured.correct, self._going.life,
        )  # fmt: skip
        line = MeasuredTrial(
            **vars(measured),
            **self._head(),
            trial=record,
            purpose=step.purpose,
            behind_s=step.behind_s,
            asked=step.reason,
            yardstick=self._speed(),
        )
        self._keep(TRIALS, line)
        log.info("  %s: %s", measured.outcome, seen.invalid or measured.reason)
        return record

    def _head(self) -> _Head:
        """The keys of the line of the next measurement that tell where it belongs."""
        self._going.number += 1
        limits = self.lines[0].limits if self.lines else self._going.limits
        return {"number": self._going.number, "plan": self._key, "process": self._going.process, "limits": limits}

    def _keep(self, name: str, line: Line) -> None:
        if not self.lines:
            line = line.model_copy(update={"ceiling": self._going.ceiling})
        self.lines.append(line)
        if self._directory is not None:
            line.append(self._directory / name)

    def answer(self, done: Done) -> SearchAnswer:
        alone = self._going.ceiling
        assert alone is not None, "nothing is done before the limits are known"
        log.info("%s: %.6g events/s: %s", self._bench.cell.name, done.rate_events_per_s, done.reason)
        windows = [line.window for line in self.lines if isinstance(line, MeasuredWindow)]
        trials = [line for line in self.lines if isinstance(line, MeasuredTrial)]
        software: dict[str, str] = {}
        application: dict[str, str] = {}
        for trial in trials:
            software |= software_of(trial.details)
            application |= application_of(trial.details)
        yards = [speed for w in windows for speed in w.yardstick or ()]
        later = [trial.yardstick for trial in trials if trial.yardstick]
        stolen = [w.steal for w in windows if w.steal is not None]
        wrong = any(trial.correct is False for trial in trials)
        unit = float(np.median(yards)) if yards else None
        estimates = enumerate(done.processes, 1)
        return SearchAnswer(
            cell=self._bench.cell,
            plan=self._key,
            sustainable_rate_events_per_s=done.rate_events_per_s,
            interval=done.interval,
            interval_of=done.interval_of,
            proven=done.proven,
            outcome=done.outcome,
            reason=done.reason,
            constraint=done.constraint,
            allowed_age_s=self._settings.max_age.seconds,
            processes=tuple(ProcessEstimate(**vars(one), process=number) for number, one in estimates),
            doubts=(*done.doubts, *changed_speed(yards, later)),
            correct=False if wrong else (True if any(trial.correct for trial in trials) else None),
            windows=len(windows),
            trials=len(trials),
            max_rate_events_per_s=self._going.limits.max_rate,
            driver_ceiling_events_per_s=alone.events_per_s,
            driver_cpu_us_per_event=alone.driver_cpu_us_per_event,
            yardstick_units_per_s=unit,
            events_per_yardstick_unit=done.rate_events_per_s / unit if unit else None,
            yardstick_spread=(max(yards) - min(yards)) / unit if unit else None,
            steal=max(stolen, default=None),
            semantics=self._bench.semantics,
            lost_at_own_speed=self._bench.lost_at_own_speed,
            software=software,
            application=application,
        )


def one_ladder(bench: ReadyCell, settings: Search, token: int) -> SearchAnswer:
    """The answer of the ladder of one fresh process, without proof trials."""
    bench.stop()
    return Searcher(bench, settings.model_copy(update={"processes": 1, "proof_steps": 0}), token).run()


def changed_speed(ladder: Sequence[float], trials: Sequence[float]) -> tuple[Doubt, ...]:
    """Returns a doubt if the machine was faster or slower after a proof trial than in the ladder (both in units/s).

    A window that the machine disturbs is measured again. A slow minute that covers the whole ladder is seen only here.
    """
    if not ladder:
        return ()
    then = float(np.median(ladder))
    now = max(trials, key=lambda speed: abs(math.log(speed / then)), default=then)
    if max(then, now) <= min(then, now) * (1 + YARDSTICK_TOLERANCE):
        return ()
    sentence = (
        f"the machine's speed was {then:,.0f} yardstick units/s in the ladder and {now:,.0f} after a proof trial: "
        "something else ran on the system's CPUs; search again"
    )
    return (Doubt("machine's speed", sentence),)


def earlier(directory: Path, settings_key: str) -> list[Line]:
    """Lines about the measurements with those settings, in their order."""
    lines: list[Line] = [*MeasuredWindow.read_log(directory / WINDOWS), *MeasuredTrial.read_log(directory / TRIALS)]
    return sorted((line for line in lines if line.plan == settings_key), key=lambda line: line.number)


def measurements(lines: Sequence[Line]) -> list[Measurement]:
    return [line.measurement for line in lines]
