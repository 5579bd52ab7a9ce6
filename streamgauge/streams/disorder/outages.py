"""Delays that come in outages: while a part of the stream is out, its events wait (docs/generation.md).

The event time of each part is cut into windows. Within a window, times up and outages alternate, both drawn. Where
the outages of a window lie is a pure function of seed, part and number of the window, in integers alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamgauge.base.errors import UserError
from streamgauge.base.units import PS, Duration, Tick, show_ticks
from streamgauge.descriptions.streams import DelaySpec
from streamgauge.records.manifests import OutageModel
from streamgauge.records.profile import part_name
from streamgauge.streams.disorder.delays import (
    NEVER,
    SELECT_BITS,
    DelayTable,
    Draws,
    Ticks,
    interpolate,
    splitmix,
    table,
    ticks_of,
)
from streamgauge.streams.disorder.outage_fit import WHOLE, fit, read_profile
from streamgauge.streams.disorder.row_groups import parts_of
from streamgauge.streams.kafka.partitioner import partitions_of

#: times that an outage of the longest length, and a usual time up with its outage, fit into a window
_LONGEST, _USUAL = 2, 16
#: most outages of a window; each costs a step
MOST_OUTAGES = 4_096
LONGEST_WINDOW = 1 << 60


@dataclass(frozen=True)
class Outages:
    """Outages of each part. The events of an outage share one selection draw, so that they are chosen together.

    An event without an outage has the draw NEVER.
    """

    lengths: DelayTable
    ups: DelayTable  # times from the end of an outage to the next one
    column: str | None = None  # its values are the parts, unless there are partitions
    partitions: int = 0
    """number of partitions, to which events belong by the key in the column, or else in turns by seq; 0: none"""
    rate: int = 0  # waiting events are delivered so many times as fast as they happened; 0: at once
    shares: dict[str, int] = field(default_factory=dict)
    """by the name of a part: which of its outages can be chosen, in WHOLE-ths; others: all"""

    @property
    def ticks(self) -> tuple[int, ...]:
        return self.lengths.ticks

    @property
    def record(self) -> OutageModel:
        """Outages as a manifest tells of them, besides the table of their lengths."""
        return OutageModel(
            column=self.column,
            partitions=self.partitions,
            rate=self.rate,
            window=self.window,
            up_table=self.ups.ticks,
            shares=self.shares,
        )

    @property
    def minimum(self) -> int:
        return 0

    @property
    def maximum(self) -> int:
        return self.lengths.maximum

    @property
    def window(self) -> int:
        return max(_LONGEST * self.maximum, _USUAL * self._usual)

    @property
    def count(self) -> int:
        """Number of outages that are drawn for a window: about twice as many as fit in."""
        return 2 * -(-self.window // self._usual)

    @property
    def _usual(self) -> int:
        return max(1, self.lengths.mean + self.ups.mean)

    def parts(self, column: pa.ChunkedArray, seq: Ticks, /) -> Ticks:
        """Hashes of the parts that the column names."""
        if self.partitions:
            in_turns = column.is_null().to_numpy()
            number = np.where(in_turns, seq % self.partitions, partitions_of(column, self.partitions))
            return _hashes_of_numbers(self.partitions)[number]
        names, codes = parts_of(column)
        hashes: Ticks = np.array([hash_of(name) for name in names], np.int64)[codes]
        return hashes

    def draw(self, seed: int, seq: Ticks, time: Ticks, parts: Ticks | None, /) -> tuple[Draws, Ticks]:
        """(selection draw, delay in ticks) of each event. parts: what `parts` gave."""
        if parts is None:
            names = _hashes_of_numbers(max(1, self.partitions))
            part = seq % len(names)
        else:
            names, part = _distinct(parts)
        window, mixed = self.window, splitmix(seed, names).view(np.int64)
        number, place = np.divmod(time, window)
        place += (mixed & (2**62 - 1))[part] % window  # parts do not begin their windows together
        number += place >= window
        place %= window
        keys, key = _distinct(mixed[part] ^ (number * _ODD))
        select = np.full(len(seq), NEVER, np.uint16)
        delays = np.zeros(len(seq), np.int64)
        end = np.zeros(len(keys), np.int64)
        waiting = np.arange(len(seq))  # rows behind all outages drawn so far
        for step in range(self.count):
            if not len(waiting):
                break
            first, second = (splitmix(seed, keys + np.int64(2 * step + k)) for k in (0, 1))
            drawn = (second >> np.uint64(64 - SELECT_BITS)).astype(np.uint16)
            begin = end + interpolate(first & _LOW, self.ups)
            end = np.minimum(begin + interpolate(second & _LOW, self.lengths), window)
            of, at = key[waiting], place[waiting]
            reached = at < end[of]
            out = reached & (at >= begin[of])
            rows, of, at = waiting[out], of[out], at[out]
            select[rows] = drawn[of]
            delays[rows] = end[of] - at
            if self.rate:
                delays[rows] += (at - begin[of]) // self.rate
            waiting = waiting[~reached]
        return self._shared(select, names, part), delays

    def _shared(self, select: Draws, names: Ticks, part: Ticks) -> Draws:
        """Raises the draws of parts that shall have fewer outages."""
        if not self.shares:
            return select
        of_hash = {hash_of(name): share for name, share in self.shares.items()}
        of_hash |= {hash_of(None): share for name, share in self.shares.items() if name == part_name(None)}
        share = np.array([of_hash.get(name, WHOLE) for name in names.tolist()], np.int64)[part]
        raised = np.minimum(select.astype(np.int64) * WHOLE // np.maximum(share, 1), NEVER)
        return np.where(share > 0, raised, NEVER).astype(np.uint16)


#: models of delays: what they draw for an event is a pure function of the seed and of this event alone
Delays = DelayTable | Outages


def delays_of(spec: DelaySpec, tick: Tick) -> Delays:
    """The model of an experiment's delays. Raises UserError if its parameters are unusable."""
    lengths, given, shares = table(spec, tick), spec.outages, dict[str, int]()
    if given is None:
        return lengths
    if given.spacing is not None:
        spacing = ticks_of(given.spacing, "delay.outages.spacing", tick)
    else:
        fitted = fit(read_profile(str(given.like)), given.by, tick, lengths.minimum, lengths.maximum)
        lengths, spacing, shares = fitted.lengths, fitted.spacing, fitted.shares
    mean = Duration(spacing * PS[tick])
    ups = table(DelaySpec(distribution="exponential", max=Duration(8 * mean.ps), mean=mean), tick)
    rate = 0 if given.delivery == "at_once" else given.delivery
    model = Outages(lengths, ups, given.column, given.partitions or 0, rate, shares)
    if model.window > LONGEST_WINDOW or model.count > MOST_OUTAGES:
        raise UserError(
            f"delay.max: found {spec.max} with outages {show_ticks(spacing, tick)} apart, allowed: at most about "
            f"{MOST_OUTAGES // (2 * _LONGEST):,} times as long as an outage and the time to the next one usually take"
        )
    return model


_ODD = np.int64(0x1E3779B97F4A7C15)
_LOW = np.uint64(0xFFFFFFFF)


def hash_of(part: str | None) -> int:
    """Hash of a part's name, which decides what is drawn for it."""
    text = b"" if part is None else b"=" + part.encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little", signed=True)


def _hashes_of_numbers(count: int) -> Ticks:
    return np.array([hash_of(str(number)) for number in range(count)], np.int64)


def _distinct(values: Ticks) -> tuple[Ticks, Ticks]:
    """(the distinct values, the place of each value among them)."""
    encoded = pa.array(values).dictionary_encode()
    return encoded.dictionary.to_numpy(), encoded.indices.to_numpy()
