"""Hand-written records of a search, as the stage leaves them: windows, proof trials, and the answer."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from streamgauge.config import Cell
from streamgauge.records.comparison import Comparison
from streamgauge.records.loss import Loss
from streamgauge.stats.paired import Ratio

AGE_S = 10.0
PLAN = "e8a3c1d94b72f056"
#: half the width of the interval of a fit, on logarithms
FIT = 0.03
#: what batches of a window take beside their mean
_NOISE = (1.04, 0.97, 1.01, 0.98)
LIMITS = {"max_rate": 630_000.0, "most_rows": 1_300_000, "continuous": False}
LOSS = Loss(2712, 90_000, "window", "a micro-batch every 1 s", 2712, 14)


@dataclass(frozen=True)
class System:
    """A batch of n rows, at most the cap, takes a + b·n seconds times the factor of its process."""

    batch_cost_s: float
    row_cost_s: float
    cap_rows: int | None = None
    factors: tuple[float, ...] = (1.0,)

    def seconds(self, rows: float) -> float:
        return self.batch_cost_s + self.row_cost_s * rows

    @property
    def rate(self) -> float:
        """The rate that it sustains; the factors' geometric mean is 1."""
        if self.cap_rows is not None:
            return self.cap_rows / self.seconds(self.cap_rows)
        return (1 - self.batch_cost_s / AGE_S) / self.row_cost_s

    @property
    def rungs(self) -> list[int]:
        """Rows of a batch on the ladder."""
        if self.cap_rows is not None:
            return [20_000, self.cap_rows, self.cap_rows, self.cap_rows // 3]
        return [20_000, *(round((AGE_S * part - self.batch_cost_s) / self.row_cost_s) for part in (0.25, 0.5))]


def windows(of: System) -> list[dict[str, Any]]:
    """Lines of windows.jsonl: in each process five windows of warm-up and a ladder, of which one window is invalid."""
    lines: list[dict[str, Any]] = []
    for process, factor in enumerate(of.factors, 1):
        at = 0.0
        plan = [("warm-up", 20_000)] * 5 + [("ladder", rows) for rows in (*of.rungs, of.rungs[0])]
        for nth, (purpose, rows) in enumerate(plan):
            batches = []
            for noise in _NOISE:
                seconds = of.seconds(rows) * factor * noise * (1 + 0.5 * math.exp(-at / 5))
                at += seconds
                batches.append({"at_s": at, "rows": rows, "seconds": seconds})
            moved = nth == len(plan) - 1
            window = {
                "process": process, "purpose": purpose, "batches": batches, "life": process,
                "held_rows": 2 * rows if rows == of.cap_rows else rows,
                "invalid": "the machine's speed changed from 310 to 150 units/s during the window" if moved else None,
                "yardstick": [310.0, 150.0 if moved else 302.0] if purpose == "ladder" else None, "steal": 0.004,
            }  # fmt: skip
            lines.append({"window": window, "asked": "until the cost of a batch is steady", "number": len(lines) + 1,
                          "plan": PLAN, "limits": LIMITS, "process": process, "version": 1})  # fmt: skip
    return lines


def recovery(number: int, purpose: str, rate: float, capacity: float, age_s: float = 0.3) -> dict[str, Any]:
    """A line of trials.jsonl without what driver and system counted; without a purpose its age stays at `age_s`."""
    behind = AGE_S if purpose else 0.0
    begin = behind or age_s
    slope = 1 - capacity / rate if purpose else 0.0

    def sample(at: float, age: float) -> dict[str, Any]:
        return {"at_s": at, "age_s": age, "backlog": round(age * rate), "taken": round(at * capacity), "warm": at > 2}

    samples = [sample(at, begin + 0.1 * (at % 2) + slope * at) for at in range(1, 21)]
    clock = [sample(0.5 + at / 10, begin + slope * at / 10) for at in range(200)]
    outcome = "unsustainable" if slope > 0 else "sustainable"
    moved = "falls further behind" if slope > 0 else "catches up" if purpose else "keeps up"
    line: dict[str, Any] = {
        "version": 1, "check": None, "dropped": None, "lost_at_own_speed": asdict(LOSS), "details": {},
        "rate_events_per_s": rate, "seconds": 20.0, "outcome": outcome,
        "reason": f"it {moved}: age {samples[0]['age_s']:.2f} s to {samples[-1]['age_s']:.2f} s <20.0 s>",
        "figures": {"age_slope": slope, "looks": 20.0}, "correct": True,
        "observation": {"rate_events_per_s": rate, "seconds": 20.0, "samples": samples, "clock": clock,
                        "behind_s": behind, "invalid": None, "overflow": False,
                        "offered": 20 * round(rate), "taken": 20 * round(min(rate, capacity))},
    }  # fmt: skip
    if purpose:
        line |= {"purpose": purpose, "behind_s": behind, "asked": f"10% {purpose} the estimate", "process": 1,
                 "number": number, "plan": PLAN, "limits": LIMITS, "yardstick": None,
                 "trial": {"process": 1, "purpose": purpose, "rate_events_per_s": rate, "seconds": 20.0, "valid": True,
                           "verdict": {"outcome": outcome, "reason": line["reason"], "figures": line["figures"]},
                           "correct": True}}  # fmt: skip
    return line


def compared(cell: Cell, against: str, ratio: float, half: float) -> dict[str, Any]:
    """Part of search.json about the comparison with the first stream of the process: six blocks of one process."""
    found = Ratio(ratio, ratio * math.exp(-half), ratio * math.exp(half), 6, 1)
    base = cell.model_copy(update={"experiment": against})
    return {"compared": [Comparison.of(cell, base, found).model_dump(mode="json")]}


def search(of: System, count: int) -> dict[str, Any]:
    """Content of search.json after that many windows and two proof trials, one on each side."""
    several = len(of.factors) > 1
    constraint = "age" if of.cap_rows is None else "batch cap"
    half = math.log(of.factors[1] / of.factors[0]) if several else FIT
    processes = [
        {
            "rate_events_per_s": of.rate / factor, "low": of.rate / factor * math.exp(-FIT),
            "high": of.rate / factor * math.exp(FIT), "constraint": constraint,
            "backlog_rows": of.cap_rows or of.rate * AGE_S, "batch_cost_s": of.batch_cost_s * factor,
            "row_cost_s": of.row_cost_s * factor, "cap_rows": of.cap_rows, "noise": 0.031, "drift": 0.002,
            "hiccups": 0.0, "misfit": 1.4, "row_growth_s": 0.0, "process": process,
        }
        for process, factor in enumerate(of.factors, 1)
    ]  # fmt: skip
    doubts = [{"kind": "one process", "sentence": "one process: how much processes differ is unknown"}]
    return {
        "version": 1,
        "sustainable_rate_events_per_s": of.rate,
        "interval": [of.rate * math.exp(-half), of.rate * math.exp(half)],
        "interval_of": "processes" if several else "fit", "proven": [0.9 * of.rate, 1.1 * of.rate],
        "outcome": "found", "reason": f"limited by the {constraint}: a batch costs {1000 * of.batch_cost_s:,.0f} ms",
        "constraint": constraint, "allowed_age_s": AGE_S, "processes": processes, "doubts": [] if several else doubts,
        "correct": True, "windows": count, "trials": 2, "max_rate_events_per_s": LIMITS["max_rate"],
        "driver_ceiling_events_per_s": 900_000.0, "driver_cpu_us_per_event": 0.034, "yardstick_units_per_s": 306.0,
        "yardstick_spread": 0.026, "steal": 0.004, "software": {}, "application": {},
    }  # fmt: skip
