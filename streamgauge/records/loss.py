"""Number of events that a query loses at the stream's own speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streamgauge.base.words import counted

Kind = Literal["never", "window", "event", "session", "tolerance"]


@dataclass(frozen=True)
class Loss:
    """Number of events that a query loses at the stream's own speed.

    events: those in no part of its answer, of `of` that it reads. partly: those that at least one window lacks, where
    windows overlap; these are also in `events` if all lack them.
    windows: number of windows, whatever their key, that lack an event; None where the rule has none.
    between: least and most events at any cadence; None where the cadence is no estimate.
    """

    events: int
    of: int
    rule: Kind
    cadence: str
    partly: int = 0
    windows: int | None = None
    between: tuple[int, int] | None = None

    @property
    def count(self) -> str:
        """The count in words, such as 2,712 of 90,000 events (3.0 %)."""
        share = 100 * self.events / max(1, self.of)
        count = f"{self.events:,} of {self.of:,} events ({share:{'.1f' if share >= 1 or not share else '.2g'}} %)"
        if self.partly > self.events:
            count += f", and {self.partly - self.events:,} more in some of their windows"
        return count

    @property
    def sentence(self) -> str:
        if self.rule == "never":
            return "no event may be dropped at any speed, however late it is"
        windows = f" in {counted(self.windows, 'window')}" if self.windows else ""
        loses = "job may lose" if self.rule == "tolerance" else "query loses"
        least, most = self.between or (self.events, self.events)
        spread = "" if least == most else f"; at any other pace, between {least:,} and {most:,}"
        return f"at the stream's own speed the {loses} {self.count}{windows}, with {self.cadence}{spread}"

    def beside(self, late: int | None, stream_s_per_s: float | None) -> str:
        """The sentence after a trial's own count of lost events, and after the speed at which the trial took it."""
        if self.rule == "never":
            return self.sentence
        count = "not counted" if late is None else f"{late:,}"
        speed = "" if stream_s_per_s is None else f" at {stream_s_per_s:,.4g} stream seconds a second"
        return f"{count} in the trial{speed}; {self.sentence}"
