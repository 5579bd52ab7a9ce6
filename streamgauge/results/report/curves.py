"""The series of the page of all nights, each with what nights saw in it and what was judged of that."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamgauge.records.judgement import SELF, Acceptance, Judgement, Look, Step
from streamgauge.records.series import Point
from streamgauge.results.index.result_index import History
from streamgauge.stats.changes import SEGMENT
from streamgauge.stats.suspects import higher_is_better


@dataclass(frozen=True)
class LevelChange:
    """A change of level, with its place among the sound points, its first point, and what was judged of it."""

    place: int
    step: Step
    point: Point
    outcome: str


@dataclass(frozen=True)
class Curve(History):
    """A series with its changes of level."""

    look: Look = field(default_factory=Look)

    @property
    def label(self) -> str:
        return f"{self.head.system}, {self.head.mode}"

    @property
    def higher_is_better(self) -> bool:
        return higher_is_better(self.head.metric, self.head.unit)

    @property
    def noise_floor(self) -> float | None:
        return self.self_test.comparison.noise_floor if self.self_test else None

    @property
    def detectable(self) -> float | None:
        """Least detectable relative change: that of the latest A/A run, else that of the look."""
        return self.self_test.comparison.detectable_effect if self.self_test else self.look.detectable

    @property
    def changes(self) -> list[LevelChange]:
        """Changes of level in order; an answer has none.

        A judgement counts only for the nearest change, at most SEGMENT points away. Of several, the closest one counts,
        then the latest.
        """
        if self.is_output:
            return []
        places = self.places
        steps = {places[step.at]: step for step in self.look.steps if step.at in places}
        near: dict[int, list[tuple[int, str]]] = {}
        for judged in reversed(self.judged):
            place = places.get(judged.changed_at)
            if place is None or judged.outcome == SELF or not steps:
                continue
            index = min(steps, key=lambda index: abs(index - place))
            if (apart := abs(index - place)) <= SEGMENT:
                near.setdefault(index, []).append((apart, _outcome_of(judged)))
        outcomes = {index: min(pairs, key=lambda pair: pair[0])[1] for index, pairs in near.items()}
        sound = self.sound
        return [
            LevelChange(index, step, sound[index], outcomes.get(index, "suspect: not rerun"))
            for index, step in steps.items()
        ]


def _outcome_of(judged: Judgement) -> str:
    """The outcome in words; of an accepted regression, who accepted it and why."""
    if isinstance(judged.evidence, Acceptance):
        return f"{judged.outcome} by {judged.evidence.author}: {judged.evidence.reason}"
    return judged.outcome
