"""Hints about the parts of a stream: whole texts, from some thousand lines, and none where parts are as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.test_by_part import BEGIN, S, analyze, written

Row = tuple[int, str]


def rows(count: int = 4000) -> list[Row]:
    """An event a second, of twenty devices in turns."""
    return [(BEGIN + i, f"d{i % 20}") for i in range(count)]


def late(by_s: int) -> list[Row]:
    """The rows, with a fifth of the events late by up to this."""
    draw = np.random.default_rng(3)
    delays = (draw.integers(1, by_s + 1, 4000) * (draw.random(4000) < 0.2)).tolist()
    return [(at - delay, device) for (at, device), delay in zip(rows(), delays, strict=True)]


def hints(folder: Path, events: list[Row], *more: str) -> list[dict[str, Any]]:
    found = analyze(written(folder / "f.csv", events), "--by", "part", "--json", *more).json["hints"]
    return [
        {key: one[key] for key in ("kind", "part", "events", "without", "enough_without_ns", "text")} for one in found
    ]


def out_of_order(events: list[Row]) -> tuple[int, int]:
    """(events out of order, the longest delay in ns)."""
    times = np.array([at for at, _ in events])
    delays = np.maximum.accumulate(times) - times
    return int((delays > 0).sum()), int(delays.max()) * S


def test_a_clock_ahead_among_late_events(tmp_path: Path) -> None:
    events = [(at + 3600 * (device == "d17"), device) for at, device in late(30)]
    left, longest = out_of_order([event for event in events if event[1] != "d17"])
    assert longest == 29 * S
    assert hints(tmp_path, events) == [{
        "kind": "part_ahead", "part": "d17", "events": 200, "without": left, "enough_without_ns": longest,
        "text": f"part d17 runs 60 min ahead of the others; without it {left} events are out of order instead of "
                f"{out_of_order(events)[0]:,}, and a watermark delay of 29 s loses none",
    }]  # fmt: skip


def test_a_clock_that_is_ahead_now_and_then(tmp_path: Path) -> None:
    events = [(at + 3600 * (n % 200 == 17), device) for n, (at, device) in enumerate(rows())]
    assert hints(tmp_path, events)[-1:] == [{
        "kind": "part_ahead", "part": "d17", "events": 200, "without": 0, "enough_without_ns": 0,
        "text": "part d17 has 20 of 200 events ahead of the others, by about 60 min; without it 0 events are out of "
                f"order instead of {out_of_order(events)[0]:,}",
    }]  # fmt: skip


def test_merging_makes_delays_longer(tmp_path: Path) -> None:
    """Three partitions are out of order by up to 2 s, and lag by up to a minute."""
    draw = np.random.default_rng(5)
    sent = [(BEGIN + i // 3, i % 3, int(draw.integers(0, 4))) for i in range(6000)]
    events = [(at, f"p{p}") for _, at, p in sorted((at + 30 * p + delay, at, p) for at, p, delay in sent)]
    merged, longest = out_of_order(events)
    within = [out_of_order([event for event in events if event[1] == f"p{p}"]) for p in range(3)]
    (hint,) = hints(tmp_path, events)
    assert hint == {
        "kind": "merging", "part": None, "events": merged - sum(n for n, _ in within),
        "without": sum(n for n, _ in within), "enough_without_ns": 2 * S,
        "text": f"merging 3 streams by part makes delays longer; a watermark for each part needs a delay of 2 s, one "
                f"for all {longest // S} s",
    }  # fmt: skip


def test_a_device_that_stops(tmp_path: Path) -> None:
    events = [(at, device) for n, (at, device) in enumerate(rows()) if device != "d17" or n < 2000]
    assert hints(tmp_path, events) == [{
        "kind": "part_idle", "part": "d17", "events": 1902, "without": None, "enough_without_ns": None,
        "text": "part d17 stops at 2026-01-01T00:33:17Z, 33.37 min and 1,902 events of others before the end: if each "
                "part has a watermark, as partitions have in Flink, it holds all others back from then on, unless it "
                "counts as idle after a while (--idle)",
    }]  # fmt: skip
    assert hints(tmp_path, events, "--idle", "34m") == []


def test_many_devices_that_stop(tmp_path: Path) -> None:
    events = [(at, device) for n, (at, device) in enumerate(rows()) if int(device[1:]) >= 7 or n < 2000]
    found = hints(tmp_path, events)
    assert [(hint["kind"], hint["part"]) for hint in found] == [("part_idle", f"d{n}") for n in range(5)]
    assert (
        found[1]["text"] == "part d1 stops at 2026-01-01T00:33:01Z, 33.63 min and 1,318 events of others before the end"
    )
    assert found[4]["text"].endswith(" before the end; 2 more parts stop")


@pytest.mark.parametrize("name", ["each by turns", "late", "sessions", "most stop", "a rare one", "bursts of one"])
def test_no_hint(tmp_path: Path, name: str) -> None:
    draw = np.random.default_rng(7)
    runs = np.repeat(draw.integers(0, 20, 4000), draw.geometric(0.1, 4000))[:4000].tolist()
    assert hints(tmp_path, {
        "each by turns": rows(),
        "late": late(300),
        "sessions": [(at, f"s{n // 50}") for n, (at, _) in enumerate(rows())],
        "most stop": [(at, device) for n, (at, device) in enumerate(rows()) if int(device[1:]) >= 12 or n < 2000],
        "a rare one": [(at, "rare" if n in (100, 900) else device) for n, (at, device) in enumerate(rows())],
        "bursts of one": [(at, f"d{runs[n]}") for n, (at, _) in enumerate(rows())],
    }[name]) == []  # fmt: skip
