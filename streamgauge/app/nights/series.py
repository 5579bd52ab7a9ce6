"""A series as a night sees it: its changes of level, the suspects among them, and what is kept for pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from streamgauge.app.nights.reruns import Subject
from streamgauge.bench.answers.figures import SECONDS
from streamgauge.bench.measurements.search.stage import PER_UNIT, RATE
from streamgauge.records.judgement import Look, Rerun, Step
from streamgauge.results.index import Index
from streamgauge.results.index.result_index import History
from streamgauge.stats.changes import ALPHA, SEGMENT, find
from streamgauge.stats.outcomes import Change, Found
from streamgauge.stats.suspects import suspects

_DAY_S = 86_400


@dataclass(frozen=True)
class Series(History):
    """A series as a night sees it, which measures a subject again."""

    @property
    def subject(self) -> Subject:
        head = self.head
        return Subject(head.experiment, head.workload, head.system, head.mode, suite=head.metric == SECONDS)

    def changes(self, together: int, alpha: float = ALPHA) -> Found:
        """Change points of the sound values; together: number of series that are searched."""
        values = [point.figure for point in self.sound]
        if not all(value > 0 for value in values):
            return Found([], None, None, False, len(values), "a value is zero or below: no ratio can be formed")
        days = [point.moment / _DAY_S for point in self.sound]
        return find(values, days, alpha=alpha, series=max(together, 1))

    def suspects(self, changes: list[Change]) -> list[Change]:
        """Changes that need a rerun, of these."""
        places = [(self.place_of(one.changed_at), str(one.outcome), one.run_id) for one in self.judged]
        return suspects(changes, places)

    def look(self, changes: Found) -> Look:
        """Look that pages show. Changes that a rerun confirmed stay in it, though later values may hide them."""
        steps = {change.index: self._step(change, change.index) for change in changes.changes}
        for one in self.judged:
            place = self.places.get(one.changed_at)
            if place is None or one.outcome not in ("regression", "improvement") or not isinstance(one.evidence, Rerun):
                continue
            if all(abs(known - place) > SEGMENT for known in steps):
                steps[place] = self._step(one.evidence.change, place)
        return Look(
            steps=tuple(steps[place] for place in sorted(steps)),
            noise=changes.noise,
            detectable=changes.detectable,
            reason=changes.reason,
        )

    def _step(self, change: Change, place: int) -> Step:
        return Step(
            at=self.sound[place].at,
            magnitude=change.magnitude,
            interval=change.interval,
            confidence=change.confidence,
        )

    def place_of(self, changed_at: str) -> int:
        """Index, among the sound points, of the change that was judged."""
        return sum(point.at < changed_at for point in self.sound)


def searched(figures: list[Series]) -> list[Series]:
    """Figures in which changes are looked for.

    A rate per yardstick unit stands in for the rate as soon as it has points enough: a machine that became slower
    changes the one and not the other, and its spread is about half (docs/results.md).
    """
    covered = {one.subject for one in figures if one.head.metric == PER_UNIT and len(one.sound) >= 2 * SEGMENT}
    return [one for one in figures if one.head.metric != (RATE if one.subject in covered else PER_UNIT)]


def looks(index: Index) -> dict[str, Look]:
    """Looks of nights at each series, by its key. One with points that no night has seen yet is looked at here."""
    heads = index.series()
    stored = index.looks()
    known: dict[str, Look] = {}
    for series in (Series.of(index, head) for head in heads):
        at, look = stored.get(series.head.key, ("", Look()))
        is_seen = at and all(point.moment <= datetime.fromisoformat(at).timestamp() for point in series.points)
        known[series.head.key] = look if is_seen else series.look(series.changes(len(heads)))
    return known
