"""Generates Nexmark's events as Arrow batches; each event is a pure function of (settings, event number, seed).

The order of events, the hot ids and the distributions of sizes and prices are those of Apache Beam's suite
(sdks/java/testing/nexmark); channels and URLs are those of nexmark-flink. Unlike there, every draw follows from
the seed and the event's number, times are exact to the microsecond, and ids of bidders are those of persons.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache, cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Ints
from streamgauge.base.schemas import NEXMARK, events_schema
from streamgauge.descriptions.nexmark import Nexmark
from streamgauge.streams.disorder.delays import DelayTable, interpolate, splitmix
from streamgauge.streams.nexmark import texts, views
from streamgauge.streams.nexmark.clock import Clock
from streamgauge.streams.nexmark.texts import HALF, POOL, Draws, below
from streamgauge.streams.nexmark.views import Texts

KINDS = ("person", "auction", "bid")
HEADER = ",".join(["date_time", *NEXMARK]).encode() + b"\n"
#: bytes of an event's numbers and times
PERSON_NUMBERS, AUCTION_NUMBERS, BID_NUMBERS = 16, 56, 32
SHUFFLE = 953


@cache
def prices() -> DelayTable:
    """Table of prices: 100 · 10^(6u) for u = 0 … 1 in 4096 steps, by Decimal, which rounds alike everywhere."""
    with localcontext() as context:
        context.prec = 30
        return DelayTable(tuple(int((100 * Decimal(10) ** (Decimal(6 * k) / 4096)).to_integral()) for k in range(4097)))


class Generator:
    """Generates any range of events; an event does not depend on the range in which it is generated."""

    def __init__(self, settings: Nexmark) -> None:
        self.settings = settings
        self._clock = Clock.of(settings)
        self._total = settings.person_proportion + settings.auction_proportion + settings.bid_proportion

    def events(self, first: int, count: int, columns: Sequence[str] = tuple(NEXMARK)) -> pa.RecordBatch:
        """Batch of the events first … first + count − 1: event_time (µs), then those columns of NEXMARK.

        Texts are string views, which a sink that needs their bytes casts to strings.
        """
        group = self.settings.out_of_order_group_size
        number = np.arange(first, first + count)
        if group > 1:
            number = number // group * group + number * SHUFFLE % group
        batch = _Batch(self, number)
        arrays = [pa.array(batch.time), *(_COLUMNS[name](batch) for name in columns)]
        return pa.RecordBatch.from_arrays(arrays, names=["event_time", *columns])

    def key(self, what: str) -> int:
        """The seed of one kind of draws."""
        return int.from_bytes(hashlib.sha256(f"{self.settings.seed}:{what}".encode()).digest()[:7])

    # -- ids, counted from 0; see Beam's PersonGenerator and AuctionGenerator

    def last_person(self, number: Ints) -> Ints:
        """Index of the newest person when event `number` happens."""
        share = self.settings.person_proportion
        epoch = number // self._total  # numpy divides by a constant without dividing, but not in divmod or %
        index: Ints = epoch * share + np.minimum(number - epoch * self._total, share - 1)
        return index

    def last_auction(self, number: Ints) -> Ints:
        """Index of the newest auction when event `number` happens; -1 before the first."""
        persons, share = self.settings.person_proportion, self.settings.auction_proportion
        epoch = number // self._total
        offset = number - epoch * self._total
        index: Ints = epoch * share + np.minimum(np.maximum(offset - persons, -1), share - 1)
        return index

    def some_person(self, newest: Ints, bits: Draws) -> Ints:
        """Draws one of the active people, or of the next few (id_lead)."""
        known = newest + 1
        active = np.minimum(known, self.settings.active_people)
        person: Ints = known - active + below(bits, active + self.settings.id_lead)
        return person

    def some_auction(self, newest: Ints, bits: Draws) -> Ints:
        """Draws one of the auctions in flight, or of the next few (id_lead)."""
        oldest = np.maximum(newest - self.settings.in_flight_auctions, 0)
        auction: Ints = oldest + below(bits, newest - oldest + 1 + self.settings.id_lead)
        return auction


@dataclass(frozen=True)
class _Rows:
    """The events of one kind in a batch: their positions in it, and their numbers."""

    generator: Generator
    code: int  # index of their kind in KINDS
    at: views.Rows
    number: Ints

    def bits(self, what: str) -> Draws:
        return splitmix(self.generator.key(what), self.number)

    def drawn(self, what: str, bound: int | Ints) -> Ints:
        return below(self.bits(what), bound)

    def named(self, what: str, ratio: int, newest: Ints, some: Callable[[Ints, Draws], Ints], shift: int = 0) -> Ints:
        """Draws ids: the hot one with probability 1 - 1/ratio, else one by some(newest, draws)."""
        settings, bits = self.generator.settings, self.bits(what)
        hot = newest // settings.hot_every * settings.hot_every + shift
        return np.where(below(bits << HALF, ratio) > 0, hot, some(newest, bits)) + settings.first_id

    def price(self, what: str) -> Ints:
        return interpolate(self.bits(what) >> np.uint64(32), prices())


class _Batch:
    """A batch of events; each of its columns is made at most once, and only if it is wanted: see _COLUMNS."""

    def __init__(self, generator: Generator, number: Ints) -> None:
        settings = generator.settings
        self._g, self._settings, self._count = generator, settings, len(number)
        self.time = generator._clock.times_us(number)
        offset = number - number // generator._total * generator._total
        first_bid = settings.person_proportion + settings.auction_proportion
        self._code = (offset >= settings.person_proportion).view(np.int8) + (offset >= first_bid).view(np.int8)
        self._persons, self._auctions = (
            _Rows(generator, code, at, number[at])
            for code, at in enumerate(np.flatnonzero(self._code == code) for code in range(2))
        )
        #: most events are bids: draws for all rows, of which the others count as missing, spare picking and placing
        self._bids = _Rows(generator, 2, slice(None), number)
        self._parts: dict[str, Texts] = {}
        self._bitmaps: dict[tuple[int, ...], pa.Buffer] = {}

    # -- putting columns together

    def _valid(self, parts: Iterable[_Rows]) -> pa.Buffer:
        key = tuple(rows.code for rows in parts)
        if key not in self._bitmaps:
            mask = self._code == key[0]
            for code in key[1:]:
                mask |= self._code == code
            self._bitmaps[key] = pa.py_buffer(np.packbits(mask, bitorder="little"))
        return self._bitmaps[key]

    def _numbers(self, *parts: tuple[_Rows, Ints]) -> pa.Array:
        values = np.zeros(self._count, np.int64)
        for rows, numbers in parts:
            values[rows.at] = numbers
        valid = self._valid(rows for rows, _ in parts)
        return pa.Array.from_buffers(pa.int64(), self._count, [valid, pa.py_buffer(values)])

    def _texts(self, *parts: tuple[_Rows, Texts]) -> pa.Array:
        valid = self._valid(rows for rows, _ in parts)
        return views.column(self._count, valid, [(rows.at, texts) for rows, texts in parts])

    def _part(self, name: str, make: Callable[[], Texts]) -> Texts:
        """Result of make(), cached: the sizes of texts are needed for the padding too."""
        if name not in self._parts:
            self._parts[name] = make()
        return self._parts[name]

    def _pooled(self, rows: _Rows, what: str, pool: Texts) -> Texts:
        return self._part(what, lambda: pool.take(rows.drawn(what, len(pool.lengths))))

    def _cut(self, rows: _Rows, what: str, longest: int) -> Texts:
        return self._part(
            what, lambda: texts.cut(rows.bits(what), 3 + rows.drawn(f"length of {what}", longest - 3), longest)
        )

    # -- columns

    def kind(self) -> pa.Array:
        return views.column(self._count, None, [(slice(None), _kinds().take(self._code))])

    def id(self) -> pa.Array:
        first = self._settings.first_id
        persons, auctions = self._persons, self._auctions
        return self._numbers(
            (persons, self._g.last_person(persons.number) + first),
            (auctions, self._g.last_auction(auctions.number) + first),
        )

    def name(self) -> pa.Array:
        return self._texts((self._persons, self._person("name")), (self._auctions, self._auction("item")))

    def of_persons(self, name: str) -> pa.Array:
        return self._texts((self._persons, self._person(name)))

    def reserve(self) -> pa.Array:
        rows = self._auctions
        return self._numbers((rows, rows.price("initial bid") + rows.price("reserve")))

    def expires(self) -> pa.Array:
        """Ends of auctions: on average when in_flight_auctions more auctions have begun."""
        rows, settings, clock = self._auctions, self._settings, self._g._clock
        ahead = settings.in_flight_auctions * self._g._total // settings.auction_proportion
        horizon = clock.times_us(rows.number + ahead) - self.time[rows.at]
        wide = rows.bits("expires") >> np.uint64(44)  # 20 bits of the horizon: whole numbers below 2^63
        part = wide.view(np.int64)
        # 2 * horizon * part >> 20, which 64 bits may not hold
        length = 1 + (horizon >> 19) * part + ((horizon & 0x7FFFF) * part >> 19)
        return self._numbers((rows, self.time[rows.at] + length))

    def seller(self) -> pa.Array:
        rows, ratio = self._auctions, self._settings.hot_seller_ratio
        newest = self._g.last_person(rows.number)
        return self._numbers((rows, rows.named("seller", ratio, newest, self._g.some_person)))

    def category(self) -> pa.Array:
        numbers = self._auctions.drawn("category", self._settings.categories)
        return self._numbers((self._auctions, numbers + self._settings.first_category))

    def auction(self) -> pa.Array:
        rows, ratio = self._bids, self._settings.hot_auction_ratio
        newest = np.maximum(self._g.last_auction(rows.number), 0)
        return self._numbers((rows, rows.named("auction", ratio, newest, self._g.some_auction)))

    def bidder(self) -> pa.Array:
        rows, ratio = self._bids, self._settings.hot_bidder_ratio
        newest = self._g.last_person(rows.number)
        return self._numbers((rows, rows.named("bidder", ratio, newest, self._g.some_person, shift=1)))

    def of_channels(self, pool: Texts) -> pa.Array:
        return self._texts((self._bids, pool.take(self._channel)))

    def extra(self) -> pa.Array:
        """Padding that brings events to their average sizes; a bid's channel and URL are not counted."""
        persons, auctions, bids, settings = self._persons, self._auctions, self._bids, self._settings
        person = _sizes(self._person(name) for name in ("name", "email", "credit_card", "city", "state"))
        auction = _sizes(self._auction(name) for name in ("item", "description"))
        pool = texts.extras(self._g.key("extras"), BID_NUMBERS, settings.bid_bytes)
        return self._texts(
            (bids, self._pooled(bids, "bid extra", pool)),
            (persons, self._padding(persons, "person extra", person + PERSON_NUMBERS, settings.person_bytes)),
            (auctions, self._padding(auctions, "auction extra", auction + AUCTION_NUMBERS, settings.auction_bytes)),
        )

    # -- what several columns share

    def _person(self, name: str) -> Texts:
        pools: dict[str, Callable[[], Texts]] = {
            "name": texts.names,
            "email": lambda: texts.emails(self._g.key("emails")),
            "credit_card": lambda: texts.credit_cards(self._g.key("credit cards")),
            "city": texts.cities,
            "state": texts.states,
        }
        return self._pooled(self._persons, name, pools[name]())

    def _auction(self, name: str) -> Texts:
        return self._cut(self._auctions, name, {"item": 20, "description": 100}[name])

    @cached_property
    def _channel(self) -> Ints:
        rows, hot = self._bids, len(texts.HOT_CHANNELS)
        bits = rows.bits("channel")
        of_hot = below(bits << HALF, self._settings.hot_channel_ratio) > 0
        return np.where(of_hot, below(bits, hot), hot + below(bits, texts.CHANNELS))

    def _padding(self, rows: _Rows, what: str, sizes: Ints, average: int) -> Texts:
        lengths = texts.padding(rows.bits(f"length of {what}"), sizes, average)
        return texts.cut(rows.bits(what), lengths, average + POOL)


#: what makes each column of NEXMARK
_COLUMNS: dict[str, Callable[[_Batch], pa.Array]] = {
    "kind": _Batch.kind,
    "id": _Batch.id,
    "name": _Batch.name,
    "email": lambda batch: batch.of_persons("email"),
    "credit_card": lambda batch: batch.of_persons("credit_card"),
    "city": lambda batch: batch.of_persons("city"),
    "state": lambda batch: batch.of_persons("state"),
    "description": lambda batch: batch._texts((batch._auctions, batch._auction("description"))),
    "initial_bid": lambda batch: batch._numbers((batch._auctions, batch._auctions.price("initial bid"))),
    "reserve": _Batch.reserve,
    "expires": _Batch.expires,
    "seller": _Batch.seller,
    "category": _Batch.category,
    "auction": _Batch.auction,
    "bidder": _Batch.bidder,
    "price": lambda batch: batch._numbers((batch._bids, batch._bids.price("price"))),
    "channel": lambda batch: batch.of_channels(texts.channels()),
    "url": lambda batch: batch.of_channels(texts.urls(batch._g.key("urls"))),
    "extra": _Batch.extra,
}


@cache
def _kinds() -> Texts:
    return views.pool(KINDS)


def _sizes(parts: Iterable[Texts]) -> Ints:
    """Sum of the bytes of each event's texts."""
    sizes: Ints = np.sum([part.lengths for part in parts], axis=0, dtype=np.int64)
    return sizes


def expanded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with strings in place of views."""
    views_of = [pa.types.is_string_view(field.type) for field in batch.schema]
    columns = [one.cast(pa.string()) if view else one for one, view in zip(batch.columns, views_of, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def lines(batch: pa.RecordBatch) -> pa.BinaryArray:
    """Lines of comma-separated fields, one per event, in HEADER's order; the batch must have all columns."""
    fields = [batch.column(name).cast(pa.string()) for name in ("event_time", *NEXMARK)]
    fields[-1] = pc.binary_join_element_wise(fields[-1], "\n", "")
    return pc.binary_join_element_wise(*fields, ",", null_handling="replace").cast(pa.binary())


def rows(generator: Generator, first: int, count: int, columns: Sequence[str]) -> pa.Table:
    """Rows of an events artifact: seq, event_time (ns), line, then the columns."""
    batch = expanded(generator.events(first, count))
    numbers = np.arange(first, first + count), batch.column(0).to_numpy() * 1000
    arrays = [*map(pa.array, numbers), lines(batch), *(batch.column(name) for name in columns)]
    return pa.Table.from_arrays(arrays, schema=events_schema({name: NEXMARK[name] for name in columns}, arrival=False))
