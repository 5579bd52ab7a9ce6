"""The search stage: trials of a cell until next_step says done; each is on disk before the next begins."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING, Any

from streamgauge import results
from streamgauge.artifacts import Store, append_json, read_jsonl, write_json
from streamgauge.config import Benchmark, Cell, Search, canonical
from streamgauge.measure.cell import ReadyCell, application_of, ready, software_of
from streamgauge.measure.lock import measuring
from streamgauge.places import here
from streamgauge.results import Result
from streamgauge.runs import environment
from streamgauge.search import Done, Rate, next_step
from streamgauge.trial import Trial, Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("streamgauge")
#: above that part of the driver's own ceiling a rate would measure the driver
CEILING_SHARE = 0.7


def cell_directory(run: Path, cell: Cell) -> Path:
    return run / "cells" / cell.name


def run(
    benchmark: Benchmark, store: Store, cell: Cell, run_directory: Path, session: Callable[[], SparkSession]
) -> dict[str, Any]:
    """Searches; returns what search.json then holds. A search that was killed goes on after its last trial.

    Repeats are whole searches, each with a fresh system; the one with the median rate stands for all of them.
    """
    directory = cell_directory(run_directory, cell)
    directory.mkdir(parents=True, exist_ok=True)
    with (
        measuring(f"{run_directory.name} {cell.name}") as token,
        ready(benchmark, store, cell, here(directory) / "work", session) as bench,
    ):
        searches = []
        for number in range(1, benchmark.search.repeats + 1):
            if number > 1:
                log.info("search %d of %d", number, benchmark.search.repeats)
                bench.stop()
            searches.append(_search(bench, benchmark.search, directory, plan_hash(benchmark, cell), token, number))
        found = _median(searches)
    write_json(directory / "search.json", found)
    results.append_once(run_directory, _result(benchmark, cell, run_directory.name, found))
    return found


def plan_hash(benchmark: Benchmark, cell: Cell) -> str:
    """Of everything that decides a cell's trials: trials of another plan are not resumed."""
    parts = [
        benchmark.source, benchmark.scale, benchmark.experiment(cell.experiment), benchmark.workload(cell.workload),
        benchmark.system(cell.system), benchmark.replay, benchmark.search,
    ]  # fmt: skip
    return hashlib.sha256("".join(canonical(part) for part in parts).encode()).hexdigest()[:16]


def _median(searches: list[dict[str, Any]]) -> dict[str, Any]:
    """The search with the median rate, the lower of two; with repeats, all rates and their spread beside it."""
    rates = [search["sustainable_rate_events_per_s"] for search in searches]
    middle = median_low(rates)
    found = searches[rates.index(middle)]
    spread = round((max(rates) - min(rates)) / middle, 4) if middle else None
    return found | ({"repeats": rates, "spread": spread} if len(rates) > 1 else {})


def _search(bench: ReadyCell, plan: Search, directory: Path, plan_key: str, token: int, search: int) -> dict[str, Any]:
    ceiling = bench.ceiling()
    log.info("the driver alone delivers %.4g events/s", ceiling.events_per_s)
    limit = float(f"{CEILING_SHARE * ceiling.events_per_s:.3g}")
    earlier = [
        r for r in read_jsonl(directory / "trials.jsonl") if (r.get("plan"), r.get("search")) == (plan_key, search)
    ]
    if earlier:
        limit = earlier[0]["max_rate"]  # the same plan as before the interruption
        log.info("resuming after %d trials", len(earlier))
    plan = plan.model_copy(update={"max_rate": max(plan.min_rate, min(plan.max_rate, limit))})
    trials, software = [_trial(record) for record in earlier], _software(earlier)
    application: dict[str, str] = {}
    while not isinstance(step := next_step(plan, trials), Done):
        log.info("trial %d: %s %.6g events/s: %s", len(trials) + 1, step.purpose, step.rate_events_per_s, step.reason)
        record = _measure(bench, plan, step, token)
        record |= {
            "number": len(trials) + 1,
            "search": search,
            "plan": plan_key,
            "max_rate": plan.max_rate,
            "asked": step.reason,
        }
        append_json(directory / "trials.jsonl", record)
        log.info("  %s: %s", record["outcome"], record["reason"])
        trials.append(_trial(record))
        software |= _software([record])
        application |= application_of(record.get("details", {}))
    low, high = step.interval
    return {
        "cell": bench.cell.model_dump(),
        "sustainable_rate_events_per_s": step.rate_events_per_s,
        "interval": [low, high],
        "outcome": step.outcome,
        "reason": step.reason,
        "search": search,
        "trials": len(trials),
        "precision": plan.precision,
        "max_rate_events_per_s": plan.max_rate,
        "driver_ceiling_events_per_s": ceiling.events_per_s,
        "driver_cpu_us_per_event": ceiling.driver_cpu_us_per_event,
        "software": software,
        "application": application,
    }


def _software(records: Iterable[dict[str, Any]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for record in records:
        found |= software_of(record.get("details", {}))
    return found


def _measure(bench: ReadyCell, plan: Search, step: Rate, token: int) -> dict[str, Any]:
    seconds = plan.trial_seconds * step.seconds_factor
    measured = bench.trial(step.rate_events_per_s, seconds, token=token, hold=step.purpose == "probe")
    return {"purpose": step.purpose, **measured.record(), "rate_events_per_s": step.rate_events_per_s}


def _trial(record: dict[str, Any]) -> Trial:
    """A trial as the search sees it, from its line."""
    return Trial(
        record["rate_events_per_s"],
        Verdict(record["outcome"], record["reason"], record["figures"]),
        record["purpose"],
        record["carried_events_per_s"],
        record["observation"]["invalid"] is None,
    )


def _result(benchmark: Benchmark, cell: Cell, run_id: str, found: dict[str, Any]) -> Result:
    low, high = found["interval"]
    sound = found["outcome"] in ("found", "all_sustained")
    return Result(
        benchmark.name, cell.experiment, cell.workload, cell.system, "streaming",
        "sustainable_rate_events_per_s", "events/s", found["sustainable_rate_events_per_s"], run_id,
        plan_hash(benchmark, cell), low, high, found["trials"], sound, found["reason"],
        software=environment()["software"] | found.get("software", {}),
    )  # fmt: skip
