"""The record of a cell's catch-up, `catchup.json`: repeats from a backlog on, and what follows from all of them."""

from __future__ import annotations

from streamgauge.base.words import counted, fewer
from streamgauge.records.answered import RatedRun
from streamgauge.records.loss import Loss
from streamgauge.records.record import Part
from streamgauge.records.spread import Spread
from streamgauge.stats.catch_up import Needed, needed


class Peak(Part):
    """Largest value of a series until each repeat was live, or until its end, and of all."""

    name: str
    unit: str
    each: tuple[float, ...]

    @property
    def most(self) -> float:
        return max(self.each)


class Repeat(Part):
    """A fresh process that began with the backlog. Without `live_s` it was not live for good."""

    valid: bool
    failed: bool = False  # the system did: then the others would be the better ones
    reason: str = ""
    live_s: float | None = None
    taken_per_s: float | None = None
    offered: int = 0
    correct: bool | None = None  # None: the output was not compared
    dropped: int | None = None  # events that the engine dropped; None: that is not known
    ages: tuple[tuple[float, float], ...] = ()  # seconds since the start, and age of the oldest event that waits


class CatchupRun(RatedRun):
    """Content of catchup.json."""

    behind_s: float
    most_s: float  # after which a repeat ends at the latest
    max_age_s: float  # it is live while no event waits for longer
    live_s: Spread | None = None
    taken_per_s: Spread | None = None
    hour: Needed  # of standstill at this rate, extrapolated
    peaks: tuple[Peak, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    lost_at_own_speed: Loss | None = None

    @property
    def outputs(self) -> dict[str, bool | None]:
        return {"": self.correct}

    @property
    def void(self) -> str:
        """Reason why no figure counts: an output was wrong, or no repeat is valid; empty if they do."""
        wrong = [one.reason for one in self.repeats if one.correct is False]
        return next(iter(wrong), "") or ("" if self.valid else self.repeats[-1].reason)

    @property
    def valid(self) -> list[Repeat]:
        return [one for one in self.repeats if one.valid]

    @property
    def correct(self) -> bool | None:
        """False if the output of a repeat was wrong; None if one of the others was not compared."""
        outputs = {one.correct for one in self.repeats}
        return False if False in outputs else None if None in outputs else True

    @property
    def backlog(self) -> int:
        """Events that wait when a repeat begins."""
        return round(self.behind_s * self.rate_events_per_s)

    @property
    def dropped(self) -> tuple[int, int] | None:
        """Events that were dropped, and those that were offered, in repeats that count and tell of it."""
        known = [(one.dropped, one.offered) for one in self.valid if one.dropped is not None]
        return (sum(count for count, _ in known), sum(of for _, of in known)) if known else None

    @property
    def after_an_hour(self) -> str:
        """Sentence on a standstill of an hour, which was not measured."""
        match self.hour.kind:
            case "never":
                return f"after a standstill at this rate it never catches up: {self.hour.reason}"
            case "not known":
                return f"what it needs after an hour of standstill is not known: {self.hour.reason}"
        needs = lengths(self.hour.seconds, self.hour.low, self.hour.high)
        return f"after an hour of standstill at this rate it needs {needs}, extrapolated from {minutes(self.behind_s)}"

    @property
    def sentence(self) -> str:
        """Sentence with all that the repeats have shown."""
        if self.void:
            return f"void: {self.void}"
        parts = []
        if self.live_s:
            needs = lengths(self.live_s.value, self.live_s.low, self.live_s.high)
            parts.append(f"after {minutes(self.behind_s)} of standstill it is live within {needs}")
        else:
            parts.append(self.not_within)
        if self.taken_per_s:
            parts.append(f"it takes {self.taken_per_s.value:,.6g} events/s while {self.rate_events_per_s:,.6g} come")
        return "; ".join([*parts, self.after_an_hour, *filter(None, [self.fewer])])

    @property
    def fewer(self) -> str:
        """Says that fewer repeats count than were asked for; empty if all do, or none."""
        counting = sum(one.valid or one.failed for one in self.repeats)
        return "" if self.void else fewer(counting, len(self.repeats), "repeat")

    @property
    def not_within(self) -> str:
        """Sentence on patience, which leaves the seconds unknown, and on what follows from the events/s taken."""
        if failed := [one.reason for one in self.repeats if one.failed]:
            return f"{len(failed)} of {counted(len(self.repeats), 'repeat')} failed: {failed[0]}"
        live, most = sum(one.live_s is None for one in self.valid), minutes(self.most_s)
        said = f"the interval of the seconds until it is live reaches the patience of {most}"
        if live:
            said = f"it was not live in {live} of {counted(len(self.valid), 'repeat')}, which last {most} at most"
        taken, within = (self.taken_per_s.value, self.taken_per_s.interval) if self.taken_per_s else (None, None)
        needs = needed(self.behind_s - self.max_age_s, self.rate_events_per_s, taken, within)
        if needs.kind == "claimed":
            said += f"; by what it takes it needs {lengths(needs.seconds, needs.low, needs.high)}"
        return said


def minutes(seconds: float) -> str:
    """A length such as 5 minutes or 1 hour."""
    return lengths(seconds, None, None)


def lengths(seconds: float | None, low: float | None, high: float | None) -> str:
    """A length with its interval, such as 11 minutes (10 to 12); the unit is that of the length."""
    if seconds is None:
        return "an unknown time"
    unit, size = next(((unit, size) for unit, size in _UNITS if seconds >= 1.5 * size), _UNITS[-1])
    value, *ends = (_short(one / size) for one in (seconds, low, high) if one is not None)
    text = f"{value} {unit}{'' if value == '1' else 's'}"
    return f"{text} ({ends[0]} to {ends[1]})" if len(ends) == 2 else text


_UNITS = (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0))


def _short(value: float) -> str:
    """Two digits at most below 10, whole numbers from there on."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
