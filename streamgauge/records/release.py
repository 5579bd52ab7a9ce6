"""The records of a release check: its repetitions, its verdict, and what it takes to run it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from streamgauge.base.environment import Environment, Machine, Software
from streamgauge.base.words import shown
from streamgauge.records.answers import AnswerLine
from streamgauge.records.claim import with_mark
from streamgauge.records.record import Line, Part, Record
from streamgauge.records.spread import Spread

Decision = Literal["go", "no-go", "inconclusive"]
Side = Literal["baseline", "candidate", "control"]
ReasonKind = Literal["answer", "capability", "output", "performance", "settings"]
State = Literal["passed", "failed", "open", "note"]


@dataclass(frozen=True)
class Reason:
    """Reason for or against a release, and its subject."""

    kind: ReasonKind
    state: State
    what: str
    why: str


class Repetition(Line):
    """A line of release.jsonl: a fresh process that was measured in turns."""

    cell: str
    side: Side
    round: int
    values: dict[str, float]  # metric -> figure
    outcome: str = "sustainable"
    void: str | None = None  # why its values do not count
    wrong: str | None = None  # fault of its output
    compared: bool = True
    ladder: bool = False  # True: its value is the rate of its ladder; False: figures at the fixed rate
    claim: str = ""  # of a ladder's rate: proven, estimated …
    bounds: tuple[str, ...] = ()  # metrics whose figures are the least that they can be

    @property
    def is_sound(self) -> bool:
        return not self.void and not self.wrong

    @property
    def text(self) -> str:
        """The figures in one line, with an outcome that leaves some out, or why they do not count."""
        marks = {metric: "at least" if metric in self.bounds else self.claim for metric in self.values}
        figures = [f"{with_mark(metric, marks[metric])} {value:.4g}" for metric, value in self.values.items()]
        outcome = [] if self.outcome == "sustainable" else [self.outcome]
        return self.wrong or self.void or "  ".join(figures + outcome)


class ReleaseAnswer(AnswerLine):
    """A line of release-answers.jsonl: an answer of one side."""

    side: Side


class JudgedSeries(Part):
    """The judgement of one metric of one cell, with its noise floor and its detectable effect."""

    cell: str
    metric: str
    state: State
    reason: str
    tolerance: float
    claim: str = ""  # of a rate: the weakest of its repetitions
    ratio: float | None = None  # candidate over baseline
    interval: tuple[float, float] | None = None
    noise_floor: float | None = None
    detectable_effect: float | None = None
    n_baseline: int = 0
    n_candidate: int = 0

    @property
    def name(self) -> str:
        """The cell and the metric, with the mark of a rate that is not proven."""
        return f"{self.cell} {with_mark(self.metric, self.claim)}"

    @property
    def figures(self) -> str:
        """The ratio with its interval, and the tolerance; empty without a ratio."""
        if self.ratio is None or self.interval is None:
            return ""
        low, high = self.interval
        return f"ratio {self.ratio:.3f} ({low:.3f} to {high:.3f}), tolerance {100 * self.tolerance:g} %"


class Beside(Part):
    """A figure of both sides, each from one measurement of it. It decides nothing, as they were not in turns."""

    cell: str
    metric: str
    unit: str
    baseline: Spread | None  # None: it has no such figure, or that is void
    candidate: Spread | None
    said: str  # how they differ, as far as the intervals tell, or why they do not

    @property
    def text(self) -> str:
        """Both figures with their intervals, and how they differ."""
        figures = (self.shown(one) for one in (self.baseline, self.candidate))
        return f"{' → '.join(figures)} {self.unit}: {self.said}"

    @staticmethod
    def shown(one: Spread | None) -> str:
        if one is None:
            return "—"
        between = " to ".join(map(shown, one.interval or ()))
        return shown(one.value) + (f" ({between})" if between else "")


class Checked(Record):
    """Fields of every record of a comparison of two versions."""

    run: str
    benchmark: str
    baseline: str
    candidate: str
    verdict: Decision
    line: str  # the verdict and its first reasons


class ReleaseCheck(Checked):
    """Content of release.json."""

    reasons: tuple[Reason, ...]
    series: tuple[JudgedSeries, ...]
    beside: tuple[Beside, ...] = ()
    versions: dict[str, dict[str, str]]  # by system: those of its parts
    environment: Environment


class ReleaseManifest(Checked):
    """Content of manifest.json: a benchmark file with all that decided, and a checksum of it."""

    configuration: dict[str, Any]
    configuration_sha256: str
    sources: tuple[dict[str, int | str], ...]
    systems: dict[str, dict[str, str]]  # by name: versions
    machine: Machine
    software: Software
    commit: str | None
    records: dict[str, str]  # by file: SHA-256
    commands: tuple[str, ...]
    sha256: str = ""
