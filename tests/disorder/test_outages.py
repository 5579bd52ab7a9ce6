"""Outages against brute force: each drawn in plain Python, every count, every chunking, every kind of source."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from streamgauge.base.errors import UserError
from streamgauge.config import Experiment, parse
from streamgauge.streams.disorder.delays import NEVER, DelayTable
from streamgauge.streams.disorder.outage_fit import WHOLE
from streamgauge.streams.disorder.outages import Outages, delays_of, hash_of
from tests.disorder.test_delays import splitmix_of
from tests.disorder.test_generation import KINDS, SEED, check_every_chunking, source, write
from tests.kafka.test_partitioner import hash_of as hashed
from tests.oracle import naive

MASK = 2**64 - 1
CUTTINGS = ((1, 1, 10**6, 10**6), (3, 1, 70, 40), (20, 7, 40, 30))


def drawn_in_python(model: Outages, seed: int, part: str | None, time: int) -> tuple[int, int]:
    """(selection draw, delay) of an event at that time, from the description on docs/generation.md alone."""
    digest = hashlib.sha256(b"" if part is None else b"=" + part.encode()).digest()
    mixed = splitmix_of(seed, int.from_bytes(digest[:8], "little"))
    number, place = divmod(time, model.window)
    place += (mixed & (2**62 - 1)) % model.window
    number, place = number + place // model.window, place % model.window
    key = mixed ^ ((number * 0x1E3779B97F4A7C15) & MASK)
    end = 0
    for step in range(model.count):
        first, second = (splitmix_of(seed, (key + 2 * step + k) & MASK) for k in (0, 1))
        begin = end + between(model.ups, first)
        end = min(begin + between(model.lengths, second), model.window)
        if place < end:
            if place < begin:
                break
            share = model.shares.get(part or "", WHOLE)
            select = min((second >> 50) * WHOLE // share, NEVER) if share else NEVER
            return select, end - place + ((place - begin) // model.rate if model.rate else 0)
    return NEVER, 0


def between(table: DelayTable, bits: int) -> int:
    low, high = table.ticks
    return low + ((high - low + 1) * (bits & 0xFFFFFFFF) >> 32)


def test_what_is_drawn_is_pinned_so_that_streams_stay_rebuildable() -> None:
    """A change here changes every stream with outages: raise ALGORITHM['stream'] with it."""
    model = Outages(DelayTable((200, 400)), DelayTable((0, 300)), "part", rate=4, shares={"a": WHOLE // 2})
    time = np.arange(0, 2_000, 250)
    parts = np.array([hash_of(name) for name in ("a", "b", None, "a", "b", None, "a", "b")], np.int64)
    select, delay = model.draw(42, np.arange(8), time, parts)
    assert list(zip(select.tolist(), delay.tolist(), strict=True)) == PINNED


PINNED = [(16384, 86), (1891, 75), (7771, 188), (6436, 186), (12732, 158), (16384, 0), (16384, 279), (2284, 189)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", range(8))
def test_every_source_every_chunking(kind: str, case: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng([KINDS.index(kind), case, 1])
    array = source(kind, rng)
    seq_array = np.sort(rng.choice(3 * len(array), len(array), replace=False)).astype(np.int64)
    by_column, parts = bool(case % 2), (1, 2, 3, 40)[case // 2]
    own = rng.integers(0, parts, len(array))
    values = [None if k == 2 else f"p{k}" for k in own.tolist()]
    groups = write(tmp_path / "events", array, seq_array, rng, part=np.array(values, object))
    longest, up = int(rng.choice([0, 1, 30, 500, 10**5])), int(rng.choice([0, 5, 100, 2_000]))
    lengths = DelayTable((longest if case == 3 else int(rng.integers(0, longest + 1)), longest))
    rate = int(rng.choice([0, 1, 3, 10]))
    shares = {"p0": WHOLE // 3, "p1": 0} if case == 5 else {}
    column, of_keys = "part" if by_column else None, case == 7
    partitions = 0 if by_column and not of_keys else parts
    model = Outages(lengths, DelayTable((0, 2 * up)), column, partitions, rate, shares)
    times, seq = array.tolist(), seq_array.tolist()
    in_turns = [str(s % parts) for s in seq]
    names = values if by_column else in_turns
    if of_keys:
        keys = [None if key is None else str((hashed(key.encode()) & 0x7FFFFFFF) % parts) for key in values]
        names = [turn if key is None else key for key, turn in zip(keys, in_turns, strict=True)]
    draws = [drawn_in_python(model, SEED, name, time) for name, time in zip(names, times, strict=True)]
    select, drawn = [s for s, _ in draws], [d for _, d in draws]
    targets = [Fraction(percent, 100) for percent in (5, 20, 50, 100)]
    bound = check_every_chunking(monkeypatch, groups, times, seq, model, select, drawn, targets, CUTTINGS)
    if parts == 1 and not rate:
        assert bound == sum(naive.out_of_order(times)), "an outage of everything brings nothing out of order"


@pytest.mark.parametrize(
    ("outages", "message"),
    [
        ({"by": "partition", "spacing": "1h"}, "partitions: missing with by: partition, allowed: the number"),
        ({"by": "d"}, "spacing: give either this or like"),
        ({"by": "d", "spacing": "1s", "like": "p.json"}, "spacing: give either this or like"),
        ({"by": "d", "spacing": "0s"}, "spacing: found 0s, allowed: above 0"),
        (
            {"by": "all", "spacing": "1s"},
            "delivery: found at_once with by: all, which keeps the order, allowed: a number",
        ),
        ({"by": "all", "spacing": "1s", "delivery": 2, "partitions": 3}, "partitions: found with by: all"),
        ({"by": "d", "spacing": "1s", "delivery": 0}, "delivery: found 0, allowed: at_once, or a whole number from 1"),
        ({"by": "d", "like": "p.json", "delivery": 2}, "delivery: found 2 with like, allowed: at_once"),
        ({"by": "d", "like": "p.json"}, "max: give this with outages.like"),
    ],
)
def test_unusable_outages_are_refused_in_one_line(outages: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(Experiment, {"name": "e", "target_percent": 5, "delay": {"outages": outages}}, "test")


def test_outages_much_longer_than_usual_are_refused() -> None:
    delay = {"distribution": "pareto", "max": "9000d", "mean": "1s", "outages": {"by": "d", "spacing": "1s"}}
    given = parse(Experiment, {"name": "e", "target_percent": 5, "delay": delay}, "test")
    with pytest.raises(UserError, match=r"delay.max: found 9000d with outages 1 s apart, allowed: at most about 1,024"):
        delays_of(given.delay, "ns")
