"""The search stage: measures windows and recovery trials of a cell until `next_step` is Done; records each at once."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.base.jsonl import append_json, read_jsonl, write_record
from streamgauge.base.places import here
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.results import Result
from streamgauge.catalog.run_log import environment
from streamgauge.config import Benchmark, Cell, Search
from streamgauge.driver.ceiling import Ceiling
from streamgauge.driver.queues import held_rows
from streamgauge.measure import timing
from streamgauge.measure.cell import ReadyCell, ready
from streamgauge.measure.lock import measuring
from streamgauge.measure.long_runs import long_runs
from streamgauge.measure.measured import application_of, software_of
from streamgauge.measure.settings_hash import plan_key, settings_hash
from streamgauge.measure.yardstick import Yard, Yardstick, moved, steal
from streamgauge.search.claims import Claim, claim_of
from streamgauge.search.ladder import small_rows, warm_up_step
from streamgauge.search.loop import next_step, run_turn
from streamgauge.search.records import Measurement, TrialRecord, Window
from streamgauge.search.steps import Done, Hold, Limits, Recover

log = logging.getLogger("streamgauge")
#: above this part of the driver's own ceiling, a rate would measure the driver
CEILING_SHARE = 0.7
#: a window is measured once more if the machine's speed changed by more around it, or if more CPU time was stolen
YARDSTICK_TOLERANCE, MOST_STEAL = 0.3, 0.1
#: metrics: the rate, and the rate over the machine's speed, which stays comparable when the machine is slower
RATE, PER_UNIT = "sustainable_rate_events_per_s", "sustainable_events_per_yardstick_unit"
WINDOWS, TRIALS = "windows.jsonl", "trials.jsonl"


def cell_directory(run: Path, cell: Cell) -> Path:
    return run / "cells" / cell.name


def run(benchmark: Benchmark, store: Store, cell: Cell, run_directory: Path, long_run_s: float = 0.0) -> dict[str, Any]:
    """Searches; returns the content of search.json. A search that was killed resumes after its last measurement.

    long_run_s: seconds of each of the long runs that test the found rate; 0 for none.
    """
    directory = cell_directory(run_directory, cell)
    directory.mkdir(parents=True, exist_ok=True)
    with (
        measuring(f"{run_directory} {cell.name}", expected_s=timing.search_seconds(benchmark)) as token,
        ready(benchmark, store, cell, here(directory) / "work") as bench,
    ):
        searcher = Searcher(bench, benchmark.search, token, directory, plan_key(benchmark, store, cell))
        found = searcher.run()
        if long_run_s and claim_of(found).rate_events_per_s:
            found["long_runs"] = long_runs(bench, searcher.done, long_run_s, token)
    return publish(benchmark, cell, run_directory, found)


def publish(
    benchmark: Benchmark, cell: Cell, run_directory: Path, found: dict[str, Any], latency: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Writes search.json with the claim, and the rate among the run's results; returns what it wrote.

    The latency stage calls it again with its runs, as one of them may contradict the rate.
    """
    claim = claim_of(found, latency)
    told = found | {"claim": claim.model_dump(mode="json")}
    if claim.rate_events_per_s is None:
        told |= dict.fromkeys((RATE, "interval", "events_per_yardstick_unit"))
    write_record(cell_directory(run_directory, cell) / "search.json", told)
    for result in _results(benchmark, cell, run_directory.name, told, claim):
        results.append_once(run_directory, result)
    return told


class Searcher:
    """A search of a ready cell; it continues with the measurements that exist for the same settings."""

    def __init__(
        self, bench: ReadyCell, settings: Search, token: int, directory: Path | None = None, settings_key: str = ""
    ) -> None:
        """Keeps no records if there is no directory."""
        self._bench, self._settings, self._token = bench, settings, token
        self._directory, self._key = directory, settings_key
        self._records = [] if directory is None else earlier(directory, settings_key)
        self._life = max((record["window"]["life"] for record in self._records if "window" in record), default=0)
        self._process = 0  # the number of the one that runs
        self._yardstick = Yardstick(bench.settings.cpus) if settings.yardstick else None
        self._last_yard: Yard | None = None
        self._limits_now = Limits()
        self.ceiling: Ceiling | None = None

    def run(self) -> dict[str, Any]:
        """Measures until the answer stands; returns it as a JSON object."""
        self.done = self.search()
        assert self.ceiling is not None
        return self._answer(self.done, self._limits_now, self.ceiling)

    def search(self) -> Done:
        """Measures until the answer stands."""
        done = self.turn(self._settings.processes)
        assert done is not None
        log.info("%.6g events/s: %s", done.rate_events_per_s, done.reason)
        return done

    def turn(self, process: int) -> Done | None:
        """Measures until that process is complete, and returns None; returns the answer once it stands."""
        self.ceiling = self._ceiling()
        self._limits_now = self._limits(self.ceiling)
        if self._records:
            log.info("resuming after %d measurements", len(self._records))
        done = run_turn(self._settings, self._limits_now, self._measure, measurements(self._records), process)
        self._bench.end_loop()
        return done

    def _ceiling(self) -> Ceiling:
        if known := next((record["ceiling"] for record in self._records if "ceiling" in record), None):
            return Ceiling(**known)
        found = self._bench.ceiling()
        log.info("the driver alone delivers %.4g events/s", found.events_per_s)
        return found

    def _limits(self, ceiling: Ceiling) -> Limits:
        known = next((record["limits"] for record in self._records), None)
        if known is not None:
            return Limits(**known)  # as before the interruption
        most = float(f"{CEILING_SHARE * ceiling.events_per_s:.3g}")
        most = max(self._settings.min_rate, min(self._settings.max_rate, most))
        replay = self._bench.benchmark.replay
        rows = held_rows(replay.max_memory_mb)  # shared by all drivers
        pinned = bool(self._bench.settings.cpus) and self._bench.pins
        return Limits(most, rows, self._bench.continuous, pinned, self._bench.lasts)

    def _measure(self, step: Hold | Recover) -> Measurement:
        if step.process != self._process and self._bench.running:
            self._bench.stop()
        fresh = not self._bench.running
        self._process = step.process
        if fresh:
            self._life += 1
            if self._settings.warmup_seconds and not (
                isinstance(step, Hold) and step.purpose in ("compile", "warm-up")
            ):
                # the process that was measured is gone: a new one begins with its warm-up
                small = small_rows(self._settings, self._limits_now, measurements(self._records), step.process)
                step = warm_up_step(self._settings, step.process, self._limits_now, (), small)
        return self._window(step) if isinstance(step, Hold) else self._recovery(step)

    def _window(self, step: Hold) -> Window:
        log.info("process %d, %s: %d rows waiting, %s", step.process, step.purpose, step.rows, step.reason)
        cpus = self._bench.settings.cpus
        before, times = self._yard(step), steal(cpus)
        window = self._bench.window(step, token=self._token)
        stolen = steal(cpus).since(times).steal
        after = self._yard(step) if window.invalid is None else None
        pair = None
        invalid = window.invalid
        if before is not None and after is not None:
            pair = (before.units_per_s, after.units_per_s)
        if before and after and pair and moved(before, after, YARDSTICK_TOLERANCE) and not self._is_second(step):
            invalid = f"the machine's speed changed from {pair[0]:,.0f} to {pair[1]:,.0f} units/s during the window"
        if invalid is None and stolen > MOST_STEAL and not self._is_second(step):
            invalid = f"{stolen:.0%} of the CPU time was stolen"
        window = dataclasses.replace(
            window,
            life=self._life,
            invalid=invalid,
            yardstick=pair,
            steal=None if math.isnan(stolen) else stolen,
        )
        self._keep(WINDOWS, {"window": dataclasses.asdict(window), "asked": step.reason})
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
        last = self._records[-1].get("window") if self._records else None
        if last is None or last["invalid"] is None:
            return False
        return (last["held_rows"], last["purpose"]) == (step.rows, step.purpose)

    def _yard(self, step: Hold) -> Yard | None:
        """Runs the yardstick while the system waits; returns None in a warm-up, which it would disturb."""
        if step.purpose != "ladder":
            self._last_yard = None
            return None
        if self._last_yard is None or self._bench.paused is False:
            self._last_yard = self._speed()
        return self._last_yard

    def _speed(self) -> Yard | None:
        """The median of three runs of the yardstick: a moment's dip is not the machine's speed. None without one."""
        if self._yardstick is None:
            return None
        self._bench.pause()
        with self._bench.frozen():  # a paused query still polls
            runs = sorted((self._yardstick.run() for _ in range(3)), key=lambda yard: yard.units_per_s)
        return runs[1]

    def _recovery(self, step: Recover) -> TrialRecord:
        self._last_yard = None  # it is of before the trial
        log.info("recovery at %.6g events/s, %.3g s behind: %s", step.rate_events_per_s, step.behind_s, step.reason)
        measured = self._bench.trial(
            step.rate_events_per_s, step.longest_s, token=self._token, behind_s=step.behind_s,
            batch_noise=step.noise, until_clear=True,
        )  # fmt: skip
        seen = measured.observation
        lasted = max((s.at_s for s in (*seen.samples, *seen.clock)), default=0.0)
        record = TrialRecord(
            step.process, step.purpose, step.rate_events_per_s, lasted, measured.verdict,
            seen.invalid is None, measured.correct, self._life,
        )  # fmt: skip
        full = {
            **measured.record(),
            "trial": dataclasses.asdict(record),
            "purpose": step.purpose,
            "rate_events_per_s": step.rate_events_per_s,
            "behind_s": step.behind_s,
            "asked": step.reason,
            "yardstick": speed.units_per_s if (speed := self._speed()) else None,
        }
        self._keep(TRIALS, full)
        log.info("  %s: %s", measured.verdict.outcome, seen.invalid or measured.verdict.reason)
        return record

    def _keep(self, name: str, record: dict[str, Any]) -> None:
        limits = self._records[0]["limits"] if self._records else dataclasses.asdict(self._limits_now)
        record |= {"number": len(self._records) + 1, "plan": self._key, "limits": limits, "process": self._process}
        if not self._records and self.ceiling is not None:
            record["ceiling"] = dataclasses.asdict(self.ceiling)
        self._records.append(record)
        if self._directory is not None:
            append_json(self._directory / name, record)

    def _answer(self, done: Done, limits: Limits, ceiling: Ceiling) -> dict[str, Any]:
        software: dict[str, str] = {}
        application: dict[str, str] = {}
        for record in self._records:
            software |= software_of(record.get("details", {}))
            application |= application_of(record.get("details", {}))
        windows = [Window.from_dict(record["window"]) for record in self._records if "window" in record]
        yards = [speed for w in windows for speed in w.yardstick or ()]
        later = [record["yardstick"] for record in self._records if "trial" in record and record.get("yardstick")]
        stolen = [w.steal for w in windows if w.steal is not None]
        trials = [TrialRecord.from_dict(record["trial"]) for record in self._records if "trial" in record]
        wrong = any(trial.correct is False for trial in trials)
        return {
            "cell": self._bench.cell.model_dump(),
            "plan": self._key,
            "sustainable_rate_events_per_s": done.rate_events_per_s,
            "interval": done.interval,
            "interval_of": done.interval_of,
            "proven": done.proven,
            "outcome": done.outcome,
            "reason": done.reason,
            "constraint": done.constraint,
            "allowed_age_s": self._settings.max_age.seconds,
            "processes": [
                {**dataclasses.asdict(one), "process": number} for number, one in enumerate(done.processes, 1)
            ],
            "doubts": (*done.doubts, *changed_speed(yards, later)),
            "correct": False if wrong else (True if any(trial.correct for trial in trials) else None),
            "windows": len(windows),
            "trials": len(trials),
            "max_rate_events_per_s": limits.max_rate,
            "driver_ceiling_events_per_s": ceiling.events_per_s,
            "driver_cpu_us_per_event": ceiling.driver_cpu_us_per_event,
            "yardstick_units_per_s": float(np.median(yards)) if yards else None,
            # comparable between days on which the machine itself was faster or slower
            "events_per_yardstick_unit": done.rate_events_per_s / float(np.median(yards)) if yards else None,
            "yardstick_spread": (max(yards) - min(yards)) / float(np.median(yards)) if yards else None,
            "steal": max(stolen, default=None),
            "semantics": self._bench.semantics,
            "lost_at_own_speed": dataclasses.asdict(self._bench.lost_at_own_speed),
            "software": software,
            "application": application,
        }


def changed_speed(ladder: Sequence[float], trials: Sequence[float]) -> tuple[str, ...]:
    """Returns a doubt if the machine was faster or slower after a recovery trial than in the ladder (both in units/s).

    A window that the machine disturbs is measured again. A slow minute that covers the whole ladder is seen only here.
    """
    if not ladder:
        return ()
    then = float(np.median(ladder))
    now = max(trials, key=lambda speed: abs(math.log(speed / then)), default=then)
    if max(then, now) <= min(then, now) * (1 + YARDSTICK_TOLERANCE):
        return ()
    return (
        f"the machine's speed was {then:,.0f} yardstick units/s in the ladder and {now:,.0f} after a recovery trial: "
        "something else ran on the system's CPUs; search again",
    )


def earlier(directory: Path, settings_key: str) -> list[dict[str, Any]]:
    """Records of the measurements with those settings, in their order."""
    lines = [*read_jsonl(directory / WINDOWS), *read_jsonl(directory / TRIALS)]
    return sorted((line for line in lines if line.get("plan") == settings_key), key=lambda line: line["number"])


def measurements(records: Sequence[dict[str, Any]]) -> list[Measurement]:
    """Reads measurements from their records."""
    return [
        Window.from_dict(record["window"]) if "window" in record else TrialRecord.from_dict(record["trial"])
        for record in records
    ]


def is_due(settings: Search, records: Sequence[dict[str, Any]], process: int) -> bool:
    """True if something of that process, or of one before it, is still to be measured."""
    if not records:
        return True
    step = next_step(settings, Limits(**records[0]["limits"]), measurements(records))
    return not isinstance(step, Done) and step.process <= process


def _results(benchmark: Benchmark, cell: Cell, run_id: str, found: dict[str, Any], claim: Claim) -> Iterator[Result]:
    """The rate and, if the yardstick was run, the rate over the machine's speed; no values if none counts."""
    rate, units = claim.rate_events_per_s, found.get("yardstick_units_per_s")
    for metric, unit, speed in ((RATE, "events/s", 1.0), (PER_UNIT, "events/unit", units)):
        if speed:
            low, high = [end / speed for end in claim.interval or ()] or (None, None)
            yield Result(
                benchmark.name, cell.experiment, cell.workload, cell.system, "streaming", metric, unit,
                rate and rate / speed, run_id, settings_hash(benchmark, cell), low, high,
                len(found.get("processes", ())), rate is not None, claim.sentence, claim=claim.kind,
                software=environment()["software"] | found.get("software", {}), replaces=True,
            )  # fmt: skip
