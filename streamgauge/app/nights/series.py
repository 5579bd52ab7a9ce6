"""A series as a night sees it, and the lines of the night's report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streamgauge.app.nights.reruns import Subject
from streamgauge.bench.answers.figures import SECONDS
from streamgauge.bench.measure.search_stage import PER_UNIT, RATE
from streamgauge.records.claim import mark_of
from streamgauge.results.index.history import History, Row
from streamgauge.stats.changes import SEGMENT, Change
from streamgauge.stats.suspects import SUSPECT_ALPHA, suspects

State = Literal["failed", "error", "regression", "improvement", "refuted", "open", "waiting", "self"]


@dataclass(frozen=True)
class Line:
    state: State
    what: str
    said: str

    def __str__(self) -> str:
        return f"{self.state}: {self.what}: {self.said}"


@dataclass(frozen=True)
class Series(History):
    """A series as a night sees it, which measures a subject again."""

    @property
    def key(self) -> str:
        return str(self.row["key"])

    @property
    def subject(self) -> Subject:
        experiment, workload, system, mode = (str(self.row[n]) for n in ("experiment", "workload", "system", "mode"))
        return Subject(experiment, workload, system, mode, suite=self.metric == SECONDS)

    @property
    def name(self) -> str:
        mark = mark_of(self.sound[-1]["claim"]) if self.sound else ""
        return f"{self.row['benchmark']} {self.subject.name} {self.metric}{f' ({mark})' if mark else ''}"

    def suspects(self, together: int) -> list[Change]:
        places = [(self._place(j), str(j["outcome"]), str(j["run_id"])) for j in self.judged]
        return suspects(self.changes(together, SUSPECT_ALPHA).changes, places)

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
