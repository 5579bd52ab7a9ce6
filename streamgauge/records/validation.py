"""The record of a validation, `result.json`: how each expectation was judged, and the facts."""

from __future__ import annotations

from pydantic import JsonValue

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


class Validation(Record):
    """Judgements of a stream, and its facts unless the data were too broken to measure them."""

    experiment: str
    success: bool
    expectations: tuple[Expectation, ...]
    facts: Facts | None

    @property
    def failed(self) -> list[Expectation]:
        return [one for one in self.expectations if not one.success]
