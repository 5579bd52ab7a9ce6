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
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.schemas import COLUMN_TYPES, NEXMARK, events_schema
from streamgauge.config import Nexmark
from streamgauge.disorder.delays import DelayTable, interpolate, splitmix
from streamgauge.nexmark import texts
from streamgauge.nexmark.clock import Clock
from streamgauge.nexmark.texts import HALF, POOL, Draws, Ints, below

KINDS = ("person", "auction", "bid")
HEADER = ",".join(["date_time", *NEXMARK]).encode() + b"\n"
#: bytes of an event's numbers and times
PERSON_NUMBERS, AUCTION_NUMBERS, BID_NUMBERS = 16, 56, 32
SHUFFLE = 953


@cache
def prices() -> DelayTable:
    """Table of prices: 100 · 10^(6u) for u = 0 … 1 in 4096 steps.

    Decimal rounds alike on every machine, pow does not.
    """
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
        """Batch of the events first … first + count − 1: event_time (µs), then those columns of NEXMARK."""
        group = self.settings.out_of_order_group_size
        number = np.arange(first, first + count)
        if group > 1:
            number = number // group * group + number * SHUFFLE % group
        batch = _Batch(self, number)
        arrays = [pa.array(batch.time), *(getattr(batch, name)() for name in columns)]
        fields = [pa.field("event_time", pa.int64()), *(pa.field(n, COLUMN_TYPES[NEXMARK[n]]) for n in columns)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def key(self, what: str) -> int:
        """The seed of one kind of draws."""
        return int.from_bytes(hashlib.sha256(f"{self.settings.seed}:{what}".encode()).digest()[:7])

    # -- ids, counted from 0; see Beam's PersonGenerator and AuctionGenerator

    def last_person(self, number: Ints) -> Ints:
        """Index of the newest person when event `number` happens."""
        share = self.settings.person_proportion
        epoch, offset = np.divmod(number, self._total)
        found: Ints = epoch * share + np.minimum(offset, share - 1)
        return found

    def last_auction(self, number: Ints) -> Ints:
        """Index of the newest auction when event `number` happens; -1 before the first."""
        persons, share = self.settings.person_proportion, self.settings.auction_proportion
        epoch, offset = np.divmod(number, self._total)
        found: Ints = epoch * share + np.clip(offset - persons, -1, share - 1)
        return found

    def some_person(self, newest: Ints, bits: Draws) -> Ints:
        """Draws one of the active people, or of the next few (id_lead)."""
        known = newest + 1
        active = np.minimum(known, self.settings.active_people)
        found: Ints = known - active + below(bits, active + self.settings.id_lead)
        return found

    def some_auction(self, newest: Ints, bits: Draws) -> Ints:
        """Draws one of the auctions in flight, or of the next few (id_lead)."""
        oldest = np.maximum(newest - self.settings.in_flight_auctions, 0)
        found: Ints = oldest + below(bits, newest - oldest + 1 + self.settings.id_lead)
        return found


@dataclass(frozen=True)
class _Rows:
    """The events of one kind in a batch: their positions in it, and their numbers."""

    generator: Generator
    at: Ints
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
    """A batch of events with one method per column, called at most once: only the wanted columns are made."""

    def __init__(self, generator: Generator, number: Ints) -> None:
        settings = generator.settings
        self._g, self._settings, self._count = generator, settings, len(number)
        self.time = generator._clock.times_us(number)
        offset = number % generator._total
        first_bid = settings.person_proportion + settings.auction_proportion
        self._code = (offset >= settings.person_proportion).view(np.int8) + (offset >= first_bid).view(np.int8)
        self._persons, self._auctions, self._bids = (
            _Rows(generator, at, number[at]) for at in (np.flatnonzero(self._code == code) for code in range(3))
        )
        self._parts: dict[str, tuple[pa.StringArray, Ints]] = {}

    # -- putting columns together

    def _numbers(self, *parts: tuple[_Rows, Ints]) -> pa.Array:
        values, missing = np.zeros(self._count, np.int64), np.ones(self._count, bool)
        for rows, found in parts:
            values[rows.at] = found
            missing[rows.at] = False
        return pa.array(values, mask=missing)

    def _texts(self, *parts: tuple[_Rows, tuple[pa.StringArray, Ints]]) -> pa.Array:
        """Column of texts; each part has a pool of texts and, for each of its rows, a position in the pool."""
        position, missing, before = np.zeros(self._count, np.int32), np.ones(self._count, bool), 0
        for rows, (pool, place) in parts:
            position[rows.at] = place + before
            missing[rows.at] = False
            before += len(pool)
        pool = parts[0][1][0] if len(parts) == 1 else pa.concat_arrays([pool for _, (pool, _) in parts])
        return pool.take(pa.array(position, mask=missing))

    def _part(self, name: str, make: Callable[[], tuple[pa.StringArray, Ints]]) -> tuple[pa.StringArray, Ints]:
        """Result of make(), cached: the sizes of texts are needed for the padding too."""
        if name not in self._parts:
            self._parts[name] = make()
        return self._parts[name]

    def _pooled(self, rows: _Rows, what: str, pool: pa.StringArray) -> tuple[pa.StringArray, Ints]:
        return self._part(what, lambda: (pool, rows.drawn(what, len(pool))))

    def _cut(self, rows: _Rows, what: str, longest: int) -> tuple[pa.StringArray, Ints]:
        def make() -> tuple[pa.StringArray, Ints]:
            lengths = 3 + rows.drawn(f"length of {what}", longest - 3)
            return texts.cut(rows.bits(what), lengths, longest), np.arange(len(lengths))

        return self._part(what, make)

    # -- columns

    def kind(self) -> pa.Array:
        return pa.array(KINDS).take(pa.array(self._code))

    def id(self) -> pa.Array:
        first = self._settings.first_id
        persons, auctions = self._persons, self._auctions
        return self._numbers(
            (persons, self._g.last_person(persons.number) + first),
            (auctions, self._g.last_auction(auctions.number) + first),
        )

    def name(self) -> pa.Array:
        return self._texts((self._persons, self._person("name")), (self._auctions, self._auction("item")))

    def email(self) -> pa.Array:
        return self._texts((self._persons, self._person("email")))

    def credit_card(self) -> pa.Array:
        return self._texts((self._persons, self._person("credit_card")))

    def city(self) -> pa.Array:
        return self._texts((self._persons, self._person("city")))

    def state(self) -> pa.Array:
        return self._texts((self._persons, self._person("state")))

    def description(self) -> pa.Array:
        return self._texts((self._auctions, self._auction("description")))

    def initial_bid(self) -> pa.Array:
        return self._numbers((self._auctions, self._auctions.price("initial bid")))

    def reserve(self) -> pa.Array:
        rows = self._auctions
        return self._numbers((rows, rows.price("initial bid") + rows.price("reserve")))

    def expires(self) -> pa.Array:
        """Ends of auctions: on average when in_flight_auctions more auctions have begun."""
        rows, settings, clock = self._auctions, self._settings, self._g._clock
        ahead = settings.in_flight_auctions * self._g._total // settings.auction_proportion
        horizon = clock.times_us(rows.number + ahead) - self.time[rows.at]
        wide = rows.bits("expires") >> np.uint64(44)  # 20 bits of the horizon: whole numbers below 2^63
        length = 1 + (2 * horizon * wide.view(np.int64) >> 20)
        return self._numbers((rows, self.time[rows.at] + length))

    def seller(self) -> pa.Array:
        rows, ratio = self._auctions, self._settings.hot_seller_ratio
        newest = self._g.last_person(rows.number)
        return self._numbers((rows, rows.named("seller", ratio, newest, self._g.some_person)))

    def category(self) -> pa.Array:
        found = self._auctions.drawn("category", self._settings.categories)
        return self._numbers((self._auctions, found + self._settings.first_category))

    def auction(self) -> pa.Array:
        rows, ratio = self._bids, self._settings.hot_auction_ratio
        newest = np.maximum(self._g.last_auction(rows.number), 0)
        return self._numbers((rows, rows.named("auction", ratio, newest, self._g.some_auction)))

    def bidder(self) -> pa.Array:
        rows, ratio = self._bids, self._settings.hot_bidder_ratio
        newest = self._g.last_person(rows.number)
        return self._numbers((rows, rows.named("bidder", ratio, newest, self._g.some_person, shift=1)))

    def price(self) -> pa.Array:
        return self._numbers((self._bids, self._bids.price("price")))

    def channel(self) -> pa.Array:
        return self._texts((self._bids, self._channels(texts.channels())))

    def url(self) -> pa.Array:
        return self._texts((self._bids, self._channels(texts.urls(self._g.key("urls")))))

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

    def _person(self, name: str) -> tuple[pa.StringArray, Ints]:
        pools: dict[str, Callable[[], pa.StringArray]] = {
            "name": texts.names,
            "email": lambda: texts.emails(self._g.key("emails")),
            "credit_card": lambda: texts.credit_cards(self._g.key("credit cards")),
            "city": lambda: pa.array(texts.CITIES),
            "state": lambda: pa.array(texts.STATES),
        }
        return self._pooled(self._persons, name, pools[name]())

    def _auction(self, name: str) -> tuple[pa.StringArray, Ints]:
        return self._cut(self._auctions, name, {"item": 20, "description": 100}[name])

    def _channels(self, pool: pa.StringArray) -> tuple[pa.StringArray, Ints]:
        rows, hot = self._bids, len(texts.HOT_CHANNELS)
        bits = rows.bits("channel")
        of_hot = below(bits << HALF, self._settings.hot_channel_ratio) > 0
        return pool, np.where(of_hot, below(bits, hot), hot + below(bits, texts.CHANNELS))

    def _padding(self, rows: _Rows, what: str, sizes: Ints, average: int) -> tuple[pa.StringArray, Ints]:
        lengths = texts.padding(rows.bits(f"length of {what}"), sizes, average)
        return texts.cut(rows.bits(what), lengths, average + POOL), np.arange(len(lengths))


def _sizes(parts: Iterable[tuple[pa.StringArray, Ints]]) -> Ints:
    """Sum of the bytes of each event's texts."""
    found: Ints = np.sum([pc.binary_length(pool).to_numpy()[place] for pool, place in parts], axis=0, dtype=np.int64)
    return found


def lines(batch: pa.RecordBatch) -> pa.BinaryArray:
    """Lines of comma-separated fields, one per event, in HEADER's order; the batch must have all columns."""
    fields = [batch.column(name).cast(pa.string()) for name in ("event_time", *NEXMARK)]
    fields[-1] = pc.binary_join_element_wise(fields[-1], "\n", "")
    return pc.binary_join_element_wise(*fields, ",", null_handling="replace").cast(pa.binary())


def rows(generator: Generator, first: int, count: int, columns: Sequence[str]) -> pa.Table:
    """Rows of an events artifact: seq, event_time (ns), line, then the columns."""
    batch = generator.events(first, count)
    numbers = np.arange(first, first + count), batch.column(0).to_numpy() * 1000
    arrays = [*map(pa.array, numbers), lines(batch), *(batch.column(name) for name in columns)]
    return pa.Table.from_arrays(arrays, schema=events_schema({name: NEXMARK[name] for name in columns}, arrival=False))
