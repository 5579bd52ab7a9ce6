"""A series of the index with its points and judgements, and the lines of a night's report."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from streamgauge.answers import functional
from streamgauge.answers.figures import SECONDS
from streamgauge.judge.changes import SEGMENT, Change, find
from streamgauge.judge.reruns import Subject
from streamgauge.judge.suspects import SELF, SUSPECT_ALPHA, suspects
from streamgauge.measure.search_stage import PER_UNIT, RATE
from streamgauge.search.claims import mark_of

State = Literal["failed", "error", "regression", "improvement", "refuted", "open", "waiting", "self"]


_DAY_S = 86_400


Row = dict[str, Any]


@dataclass(frozen=True)
class Line:
    state: State
    what: str
    said: str

    def __str__(self) -> str:
        return f"{self.state}: {self.what}: {self.said}"


@dataclass(frozen=True)
class Series:
    row: Row
    points: list[Row]
    judged: list[Row]

    @property
    def key(self) -> str:
        return str(self.row["key"])

    @property
    def metric(self) -> str:
        return str(self.row["metric"])

    @property
    def subject(self) -> Subject:
        experiment, workload, system, mode = (str(self.row[n]) for n in ("experiment", "workload", "system", "mode"))
        return Subject(experiment, workload, system, mode, suite=self.metric == SECONDS)

    @property
    def name(self) -> str:
        mark = mark_of(self.sound[-1]["claim"]) if self.sound else ""
        return f"{self.row['benchmark']} {self.subject.name} {self.metric}{f' ({mark})' if mark else ''}"

    @property
    def sound(self) -> list[Row]:
        return [point for point in self.points if functional.is_sound(point)]

    @property
    def self_test(self) -> Row | None:
        """Evidence of the latest A/A comparison; None if there was none."""
        found = [j for j in self.judged if j["outcome"] == SELF]
        return max(found, key=lambda j: str(j["changed_at"]))["evidence"] if found else None

    def suspects(self, together: int) -> list[Change]:
        values = [float(point["value"]) for point in self.sound]
        if not values or min(values) <= 0:
            return []
        found = find(values, [moment_of(point) / _DAY_S for point in self.sound], alpha=SUSPECT_ALPHA, series=together)
        return suspects(found.changes, [(self._place(j), str(j["outcome"]), str(j["run_id"])) for j in self.judged])

    def _place(self, judged: Row) -> int:
        """Index, among the sound points, of the change that was judged."""
        return sum(str(point["at"]) < str(judged["changed_at"]) for point in self.sound)


def searched(figures: list[Series]) -> list[Series]:
    """Figures in which changes are looked for.

    A rate per yardstick unit stands in for the rate as soon as it has points enough: a machine that became slower
    changes the one and not the other, and its spread is about half (docs/results.md).
    """
    covered = {one.subject for one in figures if one.metric == PER_UNIT and len(one.sound) >= 2 * SEGMENT}
    return [one for one in figures if one.metric != (RATE if one.subject in covered else PER_UNIT)]


def moment_of(point: Row) -> float:
    return datetime.fromisoformat(str(point["at"])).timestamp()
