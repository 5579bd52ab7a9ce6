"""The series of the page of all nights, each with its change points and what was judged of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamgauge.bench.answers import functional
from streamgauge.catalog.results import ACCEPTED
from streamgauge.results.index import Index
from streamgauge.results.index.history import History, Row
from streamgauge.stats.changes import SEGMENT, Change, Found
from streamgauge.stats.suspects import SELF, higher_is_better


@dataclass(frozen=True)
class Curve(History):
    """A series with its change points."""

    found: Found
    outcomes: dict[int, str]  # index of a change -> outcome of the judgement on it, or on a change close by

    @property
    def label(self) -> str:
        return f"{self.row['system']}, {self.row['mode']}"

    @property
    def higher_is_better(self) -> bool:
        return higher_is_better(str(self.row["unit"]))

    @property
    def is_output(self) -> bool:
        """True if the series describes a query's answer, where any difference is an error at once."""
        return functional.is_output(self.metric)

    @property
    def noise_floor(self) -> float | None:
        return self.self_test["comparison"]["noise_floor"] if self.self_test else None

    @property
    def detectable(self) -> float | None:
        """Least detectable relative change: that of the latest A/A run, else that of Found.detectable."""
        return self.self_test["comparison"]["detectable_effect"] if self.self_test else self.found.detectable


def curve_of(index: Index, row: Row, together: int) -> Curve:
    one = History.of(index, row)
    found = one.changes(together)
    places = {str(point["at"]): place for place, point in enumerate(one.sound)}
    told = [(places[at], j) for j in one.judged if j["outcome"] != SELF and (at := str(j["changed_at"])) in places]
    found = replace(found, changes=_confirmed_too(found.changes, told))
    return Curve(row, one.points, one.judged, found, _outcomes(found.changes, told))


def _outcomes(changes: Sequence[Change], told: list[tuple[int, Row]]) -> dict[int, str]:
    """Maps the index of a change to its judgement.

    A judgement counts only for the nearest change, at most SEGMENT points away. Of several, the closest one counts,
    then the latest.
    """
    near: dict[int, list[tuple[int, str]]] = {}
    for place, judged in reversed(told):
        for change in sorted(changes, key=lambda change: abs(change.index - place))[:1]:
            if (apart := abs(change.index - place)) <= SEGMENT:
                near.setdefault(change.index, []).append((apart, _outcome_of(judged)))
    return {index: min(pairs, key=lambda pair: pair[0])[1] for index, pairs in near.items()}


def _outcome_of(judged: Row) -> str:
    """The outcome in words; of an accepted regression, who accepted it and why."""
    told = judged["evidence"]
    return (
        f"{ACCEPTED} by {told['author']}: {told['reason']}" if judged["outcome"] == ACCEPTED else str(judged["outcome"])
    )


def _confirmed_too(changes: list[Change], told: list[tuple[int, Row]]) -> list[Change]:
    """Adds the changes that a rerun confirmed: a night tests fewer series, so it sees smaller steps than this page."""
    found = list(changes)
    for place, judged in told:
        sure = judged["outcome"] in ("regression", "improvement") and "change" in judged["evidence"]
        if sure and all(abs(change.index - place) > SEGMENT for change in found):
            found.append(Change(**{**judged["evidence"]["change"], "index": place}))
    return sorted(found, key=lambda change: change.index)
