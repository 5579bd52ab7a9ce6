"""The records of artifacts, `manifest.json`: of events, profiles, streams and validations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from streamgauge.base.units import Tick
from streamgauge.records.profile import BinnedDelays, InFile
from streamgauge.records.record import Part, Record
from streamgauge.records.validation import Facts


class Manifest(Record):
    """Description of an artifact by its stage and the store. A version is written only once there are several.

    Artifacts of another form have another key (`catalog.artifacts.ALGORITHM`). The store adds the four keys here.
    """

    kind: str = ""
    key: str = ""
    folder: str = "."  # of a remote store: where the files lie, beside the manifest
    digests: dict[str, str] = Field(default_factory=dict)  # SHA-256 of each file, by name

    def to_json(self) -> dict[str, Any]:
        """The JSON object, without keys that were not given."""
        return self.model_dump(mode="json", exclude=type(self).model_fields.keys() - self.model_fields_set)


class EventsManifest(Manifest):
    """Manifest of the events of a source."""

    files: tuple[str, ...]
    quarantine_file: str
    events: int
    quarantined: int
    lines: int  # that were taken
    source_lines: int  # of all files
    tick: Tick
    ticks_per_second: int
    columns: dict[str, str]  # name -> string, int64, float64
    arrival: bool  # True: events have an arrival time
    order: Literal["file", "arrival", "event_time"]
    in_file: InFile
    split_bytes: int
    doubts: tuple[str, ...] = ()  # how the source may be read otherwise
    sources: tuple[dict[str, int | str], ...] = ()  # size and SHA-256 of each file; or a topic and its id


class FinishedPiece(Record):
    """Files of a piece of events that is whole, kept until all are."""

    parts: tuple[str, ...]
    quarantine: tuple[str, ...]
    lines: int
    skipped_events: int  # with local times that do not exist
    skipped_seqs: tuple[int, ...]


@dataclass(frozen=True)
class Selection:
    """The delayed records: those effective at threshold bin + 1 with (draw, seq) <= (bin, last_seq)."""

    bin: int  # −1: none
    last_seq: int


class OutageModel(Part):
    """Model of a stream's outages, besides their lengths, whose table is `delay_table`. Times in ticks."""

    column: str | None  # its values are the parts, or keys of partitions; None: partitions take turns
    partitions: int  # 0: none
    rate: int  # of delivery; 0: at once
    window: int
    up_table: tuple[int, ...]  # inverse CDF of the times between outages
    shares: dict[str, int]  # by part, in 65,536ths; others: all


class StreamManifest(Manifest):
    """Manifest of a stream. Times are in ticks."""

    events_key: str
    tick: Tick
    columns: dict[str, str]
    arrival: bool
    seed: int
    target_percent: float | None  # None: as it came
    events: int
    quarantined: int  # lines of the source that are no events
    source_out_of_order: int
    target_out_of_order: int
    aimed_out_of_order: int
    achieved_out_of_order: int
    feasible_max: int
    infeasible: bool
    newly_delayed: int
    selection: Selection
    delay_min: int
    delay_max: int
    delay_table: tuple[int, ...]
    outages: OutageModel | None = None
    duplicates: int = 0  # rows beside those of `events`; the other counts are without them
    drawn_delay: BinnedDelays
    observed_delay: BinnedDelays
    sha256: str
    files: tuple[str, ...]
    csv_files: tuple[str, ...] = ()
    jsonl_files: tuple[str, ...] = ()
    kafka_files: tuple[str, ...] = ()

    @property
    def out_of_order_percent(self) -> float:
        """Share of events that are out of order: the target where it was reached, as a count of events rounds it."""
        if self.target_percent is not None and self.achieved_out_of_order == self.target_out_of_order:
            return self.target_percent
        return 100 * self.achieved_out_of_order / max(1, self.events)


class ValidationManifest(Manifest):
    """Manifest of a validation, which there is only if all expectations hold."""

    experiment: str
    success: bool
    expectations: int
    failed: tuple[str, ...]
    facts: Facts | None
    result: str
    docs: str


class ProfileManifest(Manifest):
    """Manifest of a profile: the key of its events, and whether the measures of --full are in it."""

    events: str
    full: bool
