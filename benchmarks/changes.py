"""Counts how often injected changes are found, and absent ones reported, by our judges and by Apache Otava.

    .venv/bin/python -m benchmarks.changes [--series 200] [--together 1] [--jobs 2] [--without-otava] [--json FILE]

Every series has 60 nights of history. Then a month of nights begins, and after each night all values so far are
judged. A change counts as a report if none was reported within four nights of its place before. Three judges see the
same series:

- `changes`, which reports at once;
- the nightly process, which suspects more and reruns each suspect: 8 repetitions of the old and the new software in
  turns and, if that leaves it open, 16 more, with the same noise and spikes, without the drift of months;
- Apache Otava with its defaults, but the same least magnitude.

False alarms are reports per series and month without a change. A change is found if it is reported within five nights
and three of its place. The `--together` series share the allowance of suspects, as in a night.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import venv
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from streamgauge.stats.changes import MAGNITUDE, SEGMENT, find
from streamgauge.stats.outcomes import Change
from streamgauge.stats.suspects import SUSPECT_ALPHA, confirm, suspects

HISTORY, MONTH, WITHIN = 60, 30, 5
NIGHTS = HISTORY + MONTH
KINDS = ("plain", "spikes", "drift", "weekly")
NOISES = (0.01, 0.03, 0.05, 0.10)
SHIFTS = (0.03, 0.05, 0.10, 0.20)
OTAVA = "apache-otava==0.8.0"
OTAVA_SETTINGS = {"window_len": 50, "max_pvalue": 0.001, "min_magnitude": MAGNITUDE}


class Case:
    """A series around 100; `shift` at night `at`, or none."""

    def __init__(self, kind: str, noise: float, shift: float, seed: int) -> None:
        self.kind, self.noise, self.shift = kind, noise, shift
        self.random = np.random.default_rng([KINDS.index(kind), round(1000 * noise), round(1000 * shift), seed])
        self.days = np.arange(NIGHTS, dtype=float)
        level = self._nights(NIGHTS)
        if kind == "drift":
            level += np.linspace(0, math.log1p(0.05), NIGHTS)
        if kind == "weekly":
            level += np.where(self.days % 7 >= 5, math.log1p(0.04), 0.0)
        self.at = int(self.random.integers(HISTORY, NIGHTS - WITHIN + 1)) if shift else NIGHTS
        level[self.at :] += math.log1p(shift)
        self.values: list[float] = (100 * np.exp(level)).tolist()
        self.first, self.last = (self.at, self.at + WITHIN) if shift else (HISTORY, NIGHTS)

    def _nights(self, n: int) -> np.ndarray:
        level = self.random.normal(0, self.noise, n)
        if self.kind == "spikes":
            level += np.where(self.random.random(n) < 0.05, self.random.exponential(0.3, n), 0.0)
        return level

    def rerun(self, change: Change) -> Callable[[int], tuple[list[float], list[float]]]:
        """Measures the software before and after the suspected place, in turns: only a true change differs."""
        # behind a place after the change, the nights before it have the changed software, too
        true = math.log1p(self.shift) if 0 <= self.at - change.index <= SEGMENT else 0.0
        return lambda n: (np.exp(self._nights(n)).tolist(), np.exp(self._nights(n) + true).tolist())


def at_once(case: Case, together: int) -> list[int]:
    return _month(case, together, alpha=None)


def nightly(case: Case, together: int) -> list[int]:
    return _month(case, together, alpha=SUSPECT_ALPHA)


def _month(case: Case, together: int, alpha: float | None) -> list[int]:
    """Places reported in the month; the first night only tells which changes are known already."""
    known: list[int] = []
    reported: list[int] = []
    level: dict[str, Any] = {} if alpha is None else {"alpha": alpha}
    for n in range(case.first, case.last + 1):
        changes = find(case.values[:n], case.days[:n].tolist(), series=together, **level).changes
        for change in suspects(changes, [(place, "refuted", "") for place in known]):
            known.append(change.index)
            sure = alpha is None or confirm(change, case.rerun(change)).outcome in ("regression", "improvement")
            if n > case.first and sure:
                reported.append(change.index)
    return reported


def is_found(case: Case, reported: list[int]) -> bool:
    return any(abs(place - case.at) <= 3 for place in reported)


def judged(task: tuple[str, float, float, int, int]) -> dict[str, Any]:
    """Rates of one condition by our judges: changes found or, without changes, reports per series."""
    kind, noise, shift, count, together = task
    rates: dict[str, Any] = {"kind": kind, "noise": noise, "shift": shift}
    for name, judge in {"at once": at_once, "nightly": nightly}.items():
        cases = [Case(kind, noise, shift, s) for s in range(count)]
        rates[name] = _rate([(case, judge(case, together)) for case in cases])
    return rates


def _rate(reports: list[tuple[Case, list[int]]]) -> float:
    """Share of the changes that were found or, without changes, reports per series."""
    hits = [is_found(case, places) if case.shift else len(places) for case, places in reports]
    return sum(hits) / len(hits)


def otava(task: tuple[str, float, float, int, int, str]) -> float:
    kind, noise, shift, count, _, python = task
    cases = [Case(kind, noise, shift, s) for s in range(count)]
    looks = json.loads(
        subprocess.run(
            [python, str(Path(__file__).with_name("otava_worker.py")), json.dumps(OTAVA_SETTINGS)],
            input=json.dumps([[c.values, c.first, c.last] for c in cases]),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    return _rate([(case, _new(nights)) for case, nights in zip(cases, looks, strict=True)])


def _new(nights: list[list[int]]) -> list[int]:
    known, reported = list(nights[0]), []
    for places in nights[1:]:
        for place in places:
            if all(abs(place - other) > SEGMENT for other in known):
                known.append(place)
                reported.append(place)
    return reported


def otava_python() -> str:
    """Python of an environment with Otava, made if need be: Otava pins numpy, scipy and a cloud client."""
    place = Path(__file__).resolve().parents[1] / ".venv-otava"
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", OTAVA], check=True)
    return str(python)


def show(rows: list[dict[str, Any]], judges: list[str]) -> None:
    """Prints two tables; a cell holds the judges' rates one after another."""
    console = Console(width=100)
    rate = {(r["kind"], r["noise"], r["shift"]): r for r in rows}
    for title, shifts in (("False alarms per 100 series and month", (0.0,)), ("Found within five nights, %", SHIFTS)):
        names = [f"{shift:.0%} shift" if shift else "no shift" for shift in shifts]
        table = Table("series", "noise", *names, title=f"{title}: {' / '.join(judges)}")
        for kind in KINDS:
            for noise in NOISES:
                cells = [[100 * rate[kind, noise, shift][judge] for judge in judges] for shift in shifts]
                shown = [" / ".join(f"{x:.1f}" if shifts == (0.0,) else f"{x:.0f}" for x in cell) for cell in cells]
                table.add_row(kind, f"{noise:.0%}", *shown)
        console.print(table)


def goals(rows: list[dict[str, Any]]) -> list[str]:
    """Lines that name the missed goals."""
    quiet = [r["nightly"] for r in rows if not r["shift"]]
    sharp = next(r["nightly"] for r in rows if (r["kind"], r["noise"], r["shift"]) == ("plain", 0.03, 0.10))
    missed = []
    if np.mean(quiet) > 0.01:
        missed.append(f"false alarms: {np.mean(quiet):.2%} per series and month, goal 1 %")
    if sharp < 0.95:
        missed.append(f"10 % shifts at 3 % noise: {sharp:.1%} found within five runs, goal 95 %")
    print(
        f"nightly: {np.mean(quiet):.2%} false alarms per series and month over all kinds, worst {max(quiet):.2%}; "
        f"{sharp:.1%} of 10 % shifts at 3 % noise found within five runs"
    )
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=200, help="series per condition")
    parser.add_argument("--together", type=int, default=1, help="series that a night looks at")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--without-otava", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    count = (args.series, args.together)
    tasks = [(kind, noise, shift, *count) for kind in KINDS for noise in NOISES for shift in (0.0, *SHIFTS)]
    judges = ["at once", "nightly"]
    with ProcessPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(judged, tasks))
        if not args.without_otava:
            python = otava_python()
            judges.append("Otava")
            for row, rate in zip(rows, pool.map(otava, [(*task, python) for task in tasks]), strict=True):
                row["Otava"] = rate
    show(rows, judges)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    missed = goals(rows)
    for line in missed:
        print(f"missed: {line}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
