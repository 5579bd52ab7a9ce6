"""The records of a gate: its repetitions, and its verdict on a commit."""

from __future__ import annotations

from datetime import date
from typing import Literal

from streamgauge.base.environment import Environment
from streamgauge.records.record import Part
from streamgauge.records.release import Checked, JudgedSeries, Reason, Repetition


class GateRepetition(Repetition):
    """A line of gate.jsonl: a fresh process of one side. Its round is the pair that it belongs to."""

    gate: str  # hash of both commits and of the benchmark: an unfinished gate of the same goes on
    seconds: float  # that it took of the budget
    trial_seconds: float = 0.0  # of these, that its trial took
    held_rows: int = 0  # rows that waited while its speed was measured
    ran: bool = True  # False: its process did not run, or died, for the reason in `void`
    asked: bool = False  # True: a trial at the rate was run, whose answers are compared
    unchecked: str | None = None  # why that trial does not count


class GateSeries(JudgedSeries):
    """The judgement of one metric of one cell; a ratio above 1 is slower."""

    accepted: float = 0.0  # slowdown that is accepted; 0.05 is 5 %, here and below
    seen: float | None = None  # slowdown that such pairs would have found in nine of ten gates
    spread: float | None = None  # standard deviation of a pair's slowdown
    slowdowns: tuple[float, ...] = ()  # of each pair

    @property
    def beyond(self) -> str:
        """Words that follow a slowdown in a sentence where one is accepted; empty if none is."""
        return f" beyond the accepted {100 * self.accepted:g} %" if self.accepted else ""


class Acceptance(Part):
    """An entry of accepted.yaml, and whether it counts."""

    state: Literal["counts", "expired", "in the base", "no series"]  # which holds for nothing that is compared
    slower_percent: float
    author: str
    reason: str
    until: date


class GateCheck(Checked):
    """Content of gate.json."""

    repository: str
    base: str  # as it was named
    head: str
    base_commit: str  # the merge base
    head_commit: str
    system: str
    exit_code: int
    inconclusive: Literal["warn", "fail"]
    reasons: tuple[Reason, ...]
    series: tuple[GateSeries, ...]
    accepted: tuple[Acceptance, ...]
    pairs: int
    minutes: dict[str, float]  # by what they were spent on: building, streams, measuring
    budget_minutes: float
    false_alarm: float  # share of gates, at most, that call an equal commit slower
    power: float  # with which a slowdown of the size `seen` is found
    environment: Environment
