"""Repetitions of a release check, as its rounds and its ladders leave them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from streamgauge.bench.compare.release_rules import TURNS, sides
from streamgauge.config import RELEASE_RATE
from streamgauge.records.release import Repetition, Side

P50, CPU = "processing_latency_ms_p50", "system_cpu_us_per_event"
TOLERANCE = {P50: 0.15, CPU: 0.1}


def repetition(side: Side, number: int, values: dict[str, float] | None = None, **more: Any) -> Repetition:
    return Repetition(cell="e.w", side=side, round=number, values=values or {}, **more)


def rounds(slower: float = 1.0, noise: float = 0.01, count: int = 4, seed: int = 1, **more: Any) -> list[Repetition]:
    """Repetitions in turns; only the candidate's CPU is slower."""
    draw = random.Random(seed)

    def one(side: Any, number: int) -> Repetition:
        factor = slower if side == "candidate" else 1.0
        values = {P50: 200 * draw.lognormvariate(0, noise), CPU: 40 * factor * draw.lognormvariate(0, noise)}
        mine = more if side == "candidate" else {}
        return Repetition(cell="e.w", side=side, round=number, values=values, **mine)

    return [one(side, number) for number in range(1, count + 1) for side in TURNS]


def ladders(kept: Sequence[float], **more: Any) -> list[Repetition]:
    """Pairs of processes; the candidate's keeps such a part of the rate of the baseline's."""
    draw = random.Random(len(kept))
    found = []
    for number, part in enumerate(kept, 1):
        rate = 50_000 * draw.lognormvariate(0, 0.3)  # what a drift of the machine does to both
        for side in sides(number):
            own = rate * part if side == "candidate" else rate
            found.append(repetition(side, number, {RELEASE_RATE: own}, ladder=True, **more))
    return found
