"""The record of a validation, `result.json`: how each expectation was judged, and the facts."""

from __future__ import annotations

from pydantic import JsonValue

from streamgauge.base.units import Tick
from streamgauge.records.profile import Delays
from streamgauge.records.record import Part, Record

#: counts of a stream and its events, and sums of hashes as text, by name
Facts = dict[str, int | str]


class Expectation(Part):
    """A judged expectation."""

    name: str
    suite: str
    note: str
    success: bool
    observed: JsonValue

    @property
    def text(self) -> str:
        """Words for what was observed; empty if nothing is known."""
        if isinstance(self.observed, dict):
            return ", ".join(f"{name} {value}" for name, value in self.observed.items())
        return "" if self.observed is None else str(self.observed)


class Disorder(Part):
    """Disorder of a stream by part. Delays in ticks, bursts in events."""

    events: int
    out_of_order: int
    delay: Delays
    bursts: Delays  # numbers of events in a row of a part that are out of order in the stream


class Likeness(Part):
    """A made stream beside the profile that it shall be like. Nothing is judged by it."""

    profile: str  # its file
    tick: Tick  # unit of its delays
    given: Disorder
    made: Disorder
    delay_distance: float  # largest difference of the two distributions of delays (Kolmogorov and Smirnov)
    curve_distance: float  # largest difference of the two watermark curves, as parts of the events
    part_distance: float  # part of the events out of order that would have to belong to other parts


class Validation(Record):
    """Judgements of a stream, and its facts unless the data were too broken to measure them."""

    experiment: str
    success: bool
    expectations: tuple[Expectation, ...]
    facts: Facts | None
    likeness: Likeness | None = None

    @property
    def failed(self) -> list[Expectation]:
        return [one for one in self.expectations if not one.success]
