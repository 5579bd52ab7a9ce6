"""The generator: proportions, hot ids, sizes and prices as stated; the same events however they are cut."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.base.errors import UserError
from streamgauge.base.schemas import NEXMARK
from streamgauge.config import Nexmark, Source, parse
from streamgauge.streams.nexmark.clock import Clock
from streamgauge.streams.nexmark.generator import HEADER, Generator, expanded, lines, prices, rows
from streamgauge.streams.nexmark.texts import extras

COUNT = 100_000
SECOND = 1_000_000


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return pa.Table.from_batches([expanded(Generator(Nexmark()).events(0, COUNT))])


def of(events: pa.Table, kind: str) -> pa.Table:
    return events.filter(pc.equal(events["kind"], kind))


def test_one_person_three_auctions_and_46_bids_in_every_50(events: pa.Table) -> None:
    assert events["kind"][:50].to_pylist() == ["person"] + ["auction"] * 3 + ["bid"] * 46
    assert Counter(events["kind"].to_pylist()) == {
        "person": COUNT // 50,
        "auction": 3 * COUNT // 50,
        "bid": 46 * COUNT // 50,
    }
    assert of(events, "person")["id"].to_pylist() == list(range(1000, 1000 + COUNT // 50))
    assert of(events, "auction")["id"].to_pylist() == list(range(1000, 1000 + 3 * COUNT // 50))


OWN = {
    "person": {"id", "name", "email", "credit_card", "city", "state", "extra"},
    "auction": {"id", "name", "description", "initial_bid", "reserve", "expires", "seller", "category", "extra"},
    "bid": {"auction", "bidder", "price", "channel", "url", "extra"},
}


@pytest.mark.parametrize("kind", OWN)
def test_an_event_has_its_own_columns_and_no_others(events: pa.Table, kind: str) -> None:
    found = of(events, kind)
    assert {name for name in NEXMARK if found[name].null_count == 0} == {"kind", *OWN[kind]}
    assert {name for name in NEXMARK if found[name].null_count == found.num_rows} == set(NEXMARK) - {"kind", *OWN[kind]}


@pytest.mark.parametrize(("kind", "size", "numbers"), [("person", 200, 2), ("auction", 500, 7), ("bid", 100, 4)])
def test_sizes_are_on_average_as_stated(events: pa.Table, kind: str, size: int, numbers: int) -> None:
    """A number is 8 bytes; a bid's channel and URL are not counted, as in nexmark-flink."""
    found = of(events, kind)
    texts = [found[name] for name in OWN[kind] - {"channel", "url"} if NEXMARK[name] == "string"]
    mean = 8 * numbers + sum(pc.sum(pc.binary_length(text)).as_py() for text in texts) / found.num_rows
    assert mean == pytest.approx(size, rel=0.01)


@pytest.mark.parametrize(
    ("kind", "column", "share", "newest"),
    [("auction", "seller", 3 / 4, "person"), ("bid", "auction", 1 / 2, "auction"), ("bid", "bidder", 3 / 4, "person")],
)
def test_hot_ids_have_their_share_and_the_others_are_recent(
    events: pa.Table, kind: str, column: str, share: float, newest: str
) -> None:
    known, hot, reach = 999, 0, {"person": 1000, "auction": 100}[newest]
    late = 0
    for event_kind, id_, named in zip(*(events[name].to_pylist() for name in ("kind", "id", column)), strict=True):
        if event_kind == newest:
            known = id_
        if event_kind == kind:
            hottest = (known - 1000) // 100 * 100 + 1000 + (column == "bidder")
            hot += named == hottest
            late += named > known
            assert known - reach <= named <= known + 10 or named == hottest
    assert hot / of(events, kind).num_rows == pytest.approx(share, abs=0.02)
    assert late > 0


def test_prices_are_100_times_10_to_the_6u(events: pa.Table) -> None:
    found = of(events, "bid")["price"].to_numpy()
    assert (found.min(), found.max()) >= (100, 90_000_000)
    assert found.max() <= 100_000_000
    for decade in range(6):
        within = ((found >= 10 ** (2 + decade)) & (found < 10 ** (3 + decade))).mean()
        assert within == pytest.approx(1 / 6, abs=0.01)
    assert all(abs(tick - 100 * 10 ** (6 * k / 4096)) <= 0.51 for k, tick in enumerate(prices().ticks))


def test_an_auction_lasts_on_average_until_a_hundred_more_have_begun(events: pa.Table) -> None:
    found = of(events, "auction")
    lasts = pc.subtract(found["expires"], found["event_time"]).to_numpy() / SECOND
    assert lasts.min() > 0
    assert lasts.mean() == pytest.approx(100 * 50 / 3 / 10_000, rel=0.03)
    assert Counter(found["category"].to_pylist()).keys() == set(range(10, 15))


def test_no_auction_ends_before_it_begins_however_far_ahead_others_begin() -> None:
    rare = Nexmark(rate=1, bid_proportion=1000, in_flight_auctions=20_000)
    found = of(expanded(Generator(rare).events(0, 30_000)), "auction")
    lasts = pc.subtract(found["expires"], found["event_time"]).to_numpy() / SECOND
    assert lasts.min() > 0
    assert lasts.mean() == pytest.approx(20_000 * 1004 / 3, rel=0.2)


def test_channels_and_urls(events: pa.Table) -> None:
    found = of(events, "bid")
    hot = pc.is_in(found["channel"], pa.array(["Google", "Facebook", "Baidu", "Apple"])).to_numpy()
    assert hot.mean() == pytest.approx(0.5, abs=0.02)
    url = found["url"][0].as_py()
    assert url.startswith("https://www.nexmark.com/")
    assert len(url.split("/")) == 7
    told = pc.match_substring(found["url"], "&channel_id=").to_numpy(zero_copy_only=False)
    assert not told[hot].any()
    assert told[~hot].mean() == pytest.approx(0.9, abs=0.02)


CUTS = st.lists(st.integers(0, 3000), max_size=6)
CHANGES: list[dict[str, Any]] = [
    {},
    {"out_of_order_group_size": 7},
    {"next_rate": 20_000, "rate_period": "10s"},
    {"person_proportion": 2, "auction_proportion": 1, "bid_proportion": 4, "hot_every": 1, "id_lead": 0},
]


@settings(max_examples=20, deadline=None)
@given(CUTS, st.integers(0, 10**9), st.sampled_from(CHANGES))
def test_events_are_the_same_however_they_are_cut(cuts: list[int], first: int, change: dict[str, Any]) -> None:
    generator = Generator(Nexmark.model_validate(change))
    edges = sorted({0, 3000, *cuts})
    parts = [expanded(generator.events(first + a, b - a)) for a, b in itertools.pairwise(edges)]
    whole = pa.Table.from_batches([expanded(generator.events(first, 3000))])
    assert pa.Table.from_batches(parts).combine_chunks() == whole
    assert pa.Table.from_batches([expanded(generator.events(first, 3000, ("price", "kind")))]) == whole.select(
        ["event_time", "price", "kind"]
    )


@pytest.mark.parametrize("average", [200, 500, 2000, 10_000])
def test_long_texts_are_as_long_as_stated(average: int) -> None:
    for seed in range(3):  # some begin near the end of the endless text
        lengths = extras(seed, 32, average).lengths
        assert lengths.mean() == pytest.approx(average - 32, rel=0.02)
        assert lengths.max() <= (average - 32) * 1.2 + 1


def test_another_seed_other_events_of_the_same_kinds() -> None:
    one, other = (expanded(Generator(Nexmark(seed=seed)).events(0, 5000)) for seed in (1, 2))
    assert one["kind"] == other["kind"]
    assert all(one[name] != other[name] for name in ("name", "price", "auction", "bidder", "extra", "expires", "url"))


def test_a_group_is_shuffled_within_itself() -> None:
    found = Generator(Nexmark(out_of_order_group_size=10)).events(0, 100, ())["event_time"].to_pylist()
    first = found[:10]
    assert first != sorted(first)
    assert [sorted(found[at : at + 10]) for at in range(0, 100, 10)] == [
        [min(first) + 100 * (at + k) for k in range(10)] for at in range(0, 100, 10)
    ]


@pytest.mark.parametrize(("shape", "steps"), [("square", 2), ("sine", 10)])
def test_rates_change_between_two(shape: str, steps: int) -> None:
    clock = Clock.of(
        Nexmark.model_validate({"rate": 1000, "next_rate": 3000, "rate_shape": shape, "rate_period": "20s"})
    )
    assert (len(clock.rates), clock.rates[0]) == (steps, 1000)
    assert max(clock.rates) == 3000
    found = clock.times_us(np.arange(100_000)) - clock.base_us
    per_second = Counter((found // SECOND).tolist())
    length = 20 // steps
    for second in range(40):
        assert per_second[second] == clock.rates[second // length % steps]
    assert (np.diff(found) >= 0).all()


def test_a_line_is_the_event_as_text() -> None:
    generator = Generator(Nexmark())
    batch = generator.events(0, 60)
    names = HEADER.decode().strip().split(",")
    for line, row in zip(lines(batch).to_pylist(), batch.to_pylist(), strict=True):
        row["date_time"] = row.pop("event_time")
        fields = line.decode().removesuffix("\n").split(",")
        assert dict(zip(names, fields, strict=True)) == {k: "" if row[k] is None else str(row[k]) for k in names}
    table = rows(generator, 100, 3, ("price",))
    assert table["seq"].to_pylist() == [100, 101, 102]
    assert table["event_time"][0].as_py() == (1436918400000000 + 100 * 100) * 1000


@pytest.mark.spark
def test_same_bytes_for_1_3_and_16_partitions(spark: Any) -> None:
    found = set()
    for partitions in (1, 3, 16):
        edges = [4_800 * part // partitions for part in range(partitions + 1)]
        ranges = list(itertools.pairwise(edges))

        def write(one: tuple[int, int]) -> bytes:
            first, last = one
            return b"".join(lines(Generator(Nexmark(seed=7)).events(first, last - first)).to_pylist())

        parts = spark.sparkContext.parallelize(ranges, partitions).map(write).collect()
        found.add(hashlib.sha256(b"".join(parts)).hexdigest())
    assert len(found) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "nexmark", "files": "a.csv"}, "files: not for format nexmark, which reads no file; leave it out"),
        ({"format": "nexmark", "nexmark": {"events": 0}}, "nexmark.events: found 0, allowed: above 0"),
        ({"format": "nexmark", "nexmark": {"out_of_order_group_size": 953}}, "no multiple of 953"),
        ({"format": "nexmark", "columns": {"price": "string"}}, "columns: found price: string, allowed: kind: string"),
        ({"format": "nexmark", "time": {"column": "date_time", "unit": "ps"}}, "time: not for format nexmark"),
        ({"format": "nexmark", "separator": ";"}, "separator: not for format nexmark, which makes its own events"),
        (
            {"format": "nexmark", "nexmark": {"base_time": "2300-01-01T00:00:00Z"}},
            "all events lie between 1678 and 2261",
        ),
        (
            {"format": "nexmark", "nexmark": {"next_rate": 5, "rate_period": "5s"}},
            "rate_period: found 5s, allowed: at least 10s",
        ),
        ({"files": "a.csv", "time": {"column": 0}, "nexmark": {}}, "nexmark: these are parameters of format: nexmark"),
        ({"time": {"column": 0}}, "files: found none, allowed: one name or a list"),
    ],
)
def test_a_source_that_cannot_be_is_told_in_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as told:
        parse(Source, change, "source")
    assert message in str(told.value)
    assert "\n" not in str(told.value)
