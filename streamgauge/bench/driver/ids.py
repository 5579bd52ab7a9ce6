"""Gives the ids of a stream values of their own in each round and lap, so that no event stands in for another one.

A round is one offering of the stream: a trial, a closed loop, or the warm-up of a job; a lap is one loop of it. Whole
numbers move on by multiples of a power of ten above all of them, so that their last digits stay; texts get a suffix,
and UUIDs another beginning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Rows, flags, int64s, ints, replaced
from streamgauge.base.errors import UserError
from streamgauge.records.driver import DriverFigures

#: types of columns that can be ids
KINDS = ("string", "int64")
_UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_TEXT, _UUIDS = -1, -2
_TOP = 2**63


@dataclass(frozen=True)
class Turn:
    """A lap of a round: the values of ids are its own."""

    round: int
    lap: int = 0

    @property
    def number(self) -> int:
        """A whole number that no other turn has, and that is small for small ones (Szudzik's pairing)."""
        one, other = self.round, self.lap
        return one * one + one + other if one >= other else other * other + one

    @property
    def suffix(self) -> str:
        return f"~{self.round}" + (f".{self.lap}" if self.lap else "")

    @property
    def noise(self) -> int:
        """63 bits that follow from the number alone (the finaliser of splitmix64)."""
        bits = (self.number * 0x9E3779B97F4A7C15) % 2**64
        bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % 2**64
        return (bits ^ (bits >> 31)) >> 1


@dataclass(frozen=True)
class Ids:
    """The id columns of a stream: for each the power of ten above its numbers, -1 for texts, -2 for UUIDs."""

    steps: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, table: pa.Table, columns: Sequence[str]) -> Ids:
        """Looks at the columns of a stream. Raises UserError for one that cannot be an id."""
        return cls({name: _step(name, table) for name in columns})

    def marked(self, rows: Rows, turn: Turn) -> Rows:
        """The rows with the ids of that turn."""
        return self._changed(rows, turn, 1)

    def plain(self, rows: Rows, turn: Turn) -> Rows:
        """The rows with the ids of the stream. rows: of that turn."""
        return self._changed(rows, turn, -1)

    def _changed(self, rows: Rows, turn: Turn, sign: int) -> Rows:
        if not turn.number or not self.steps:
            return rows
        return replaced(rows, {name: _other(rows.column(name), step, turn, sign) for name, step in self.steps.items()})


@dataclass(frozen=True)
class Laps:
    """The ids of the rows of all queues in a round, and the rows of each queue in a loop of the stream."""

    ids: Ids
    round: int
    rows: tuple[int, ...]

    @classmethod
    def of(cls, status: Sequence[DriverFigures]) -> Laps:
        """Makes them of the status of each driver process of an open trial."""
        return cls(Ids(status[0]["ids"]), status[0]["round"], tuple(rows for one in status for rows in one["lap_rows"]))

    def plain(self, batch: pa.RecordBatch, queue: int, row: int) -> pa.RecordBatch:
        """The rows of a queue from that one on, which are of one loop, with the ids of the stream."""
        return self.ids.plain(batch, Turn(self.round, row // max(1, self.rows[queue])))


def _step(name: str, table: pa.Table) -> int:
    column = table.column(name) if name in table.column_names else pa.chunked_array([], pa.null())
    if pa.types.is_string(column.type):
        is_uuid = pc.match_substring_regex(column, _UUID)
        return _UUIDS if pc.all(is_uuid, skip_nulls=True, min_count=1).as_py() else _TEXT
    if not pa.types.is_int64(column.type):
        raise UserError(f"replay.ids: found {name!r} ({column.type}), allowed: columns of type {' or '.join(KINDS)}")
    ends = pc.min_max(column).as_py()
    largest = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
    return int(10 ** len(str(largest)))


def _other(values: pa.Array, step: int, turn: Turn, sign: int) -> pa.Array:
    """The values of another turn: sign 1 from the stream's to the turn's, -1 back."""
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([_other(chunk, step, turn, sign) for chunk in values.chunks], values.type)
    if step == _TEXT:
        if sign > 0:
            return pc.binary_join_element_wise(values, turn.suffix, "")
        return pc.replace_substring_regex(values, re.escape(turn.suffix) + "$", "")
    if step == _UUIDS:
        noise = turn.noise % 2**32
        texts = values.to_pylist()
        return pa.array([t if t is None else f"{int(t[:8], 16) ^ noise:08x}{t[8:]}" for t in texts], values.type)
    numbers = ints(pc.fill_null(values, 0))
    if (turn.number + 1) * step < _TOP:
        by = turn.number * step
        moved = np.where(numbers < 0, numbers - sign * by, numbers + sign * by)
    else:  # no room above them: equal numbers stay equal, and those of two turns differ as far as hashes do
        moved = numbers ^ turn.noise
    return int64s(moved, flags(pc.is_valid(values)))
