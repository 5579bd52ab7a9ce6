"""analyze --by: figures of each part, what merging adds, and hints about a part that is ahead."""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command import Answer, Call, run

BEGIN = 1_767_225_600
S = 10**9


def analyze(file: Path, *more: str, unit: str = "s") -> Answer:
    return run(Call(["analyze", str(file), "--time", "ts", "--unit", unit, *more]))


def written(file: Path, rows: list[tuple[int, str]]) -> Path:
    file.write_text("ts,part\n" + "".join(f"{at},{part}\n" for at, part in rows))
    return file


@pytest.fixture
def merged(tmp_path: Path) -> Path:
    """Three streams, each in order, that are merged with a lag of 0, 7 and 30 s."""
    lags = (("a", 0), ("b", 7), ("c", 30))
    rows = sorted((BEGIN + i + lag, BEGIN + i, name) for name, lag in lags for i in range(3000))
    return written(tmp_path / "merged.csv", [(at, name) for _, at, name in rows])


def test_disorder_that_only_comes_from_merging(merged: Path) -> None:
    profile = analyze(merged, "--by", "part", "--json").json
    by_part = profile["by_part"]
    assert (profile["out_of_order"], by_part["out_of_order"]) == (5998, 0)
    figures = [
        (one["part"], one["events"], one["out_of_order"], one["behind_ns"]["max"], one["longest_idle_ns"])
        for one in by_part["parts"]
    ]
    assert figures == [("a", 3000, 0, 0, 0), ("b", 3000, 0, 6 * S, 1 * S), ("c", 3000, 0, 29 * S, 1 * S)]
    assert [(hint["kind"], hint["events"], hint["without"], hint["text"]) for hint in profile["hints"]] == [
        (
            "merging", 5998, 0,
            "each of 3 streams by part is in order alone: all 5,998 events out of order come from merging them; a "
            "watermark for each part needs no delay, one for all 29 s",
        )
    ]  # fmt: skip
    shown = analyze(merged, "--by", "part").out
    assert "  out of order      0 within their part, and 5,998 more when merged\n" in shown
    assert "  c      3,000             0            0 s        29 s        29 s           1 s       0\n" in shown


def test_devices_whose_clock_is_ahead_are_named(tmp_path: Path) -> None:
    ahead = {17: 3600, 4: 1800}
    rows = [(BEGIN + i + ahead.get(i % 20, 0), f"d{i % 20}") for i in range(10_000)]
    profile = analyze(written(tmp_path / "f.csv", rows), "--by", "part", "--json").json
    hints = [(hint["kind"], hint["part"], hint["events"], hint["without"]) for hint in profile["hints"]]
    others = [at for at, part in rows if part != "d17"]
    late = sum(at < before for at, before in zip(others[1:], accumulate(others, max), strict=False))
    assert hints == [("part_ahead", "d17", 500, late), ("part_ahead", "d4", 500, 0)]
    assert "part d17 runs 60 min ahead of the others; without it " in profile["hints"][0]["text"]
    assert [one["part"] for one in profile["by_part"]["parts"]] == [f"d{k}" for k in range(20)]


def test_the_right_one_of_two_clocks_is_not_known(tmp_path: Path) -> None:
    rows = [(BEGIN + i + 3600 * (i % 2), f"d{i % 2}") for i in range(1000)]
    profile = analyze(written(tmp_path / "f.csv", rows), "--by", "part", "--json").json
    assert [hint["kind"] for hint in profile["hints"]] == ["merging"]


def test_a_part_that_pauses_and_one_without_a_name(tmp_path: Path) -> None:
    rows = [(BEGIN, "a"), (BEGIN + 5, ""), (BEGIN + 90, ""), (BEGIN + 95, "a"), (BEGIN + 100, "b")]
    file = written(tmp_path / "f.csv", rows)
    profile = analyze(file, "--by", "part", "--json").json
    parts = {one["part"]: (one["longest_idle_ns"] // S, one["idle_spells"]) for one in profile["by_part"]["parts"]}
    # of "a": from its event at 0 to the one at 90 before it comes again; of the one without a name: none is over 60 s
    assert parts == {"a": (90, 1), "b": (0, 0), None: (10, 0)}
    spells = analyze(file, "--by", "part", "--idle", "9s", "--json").json["by_part"]
    assert sum(one["idle_spells"] for one in spells["parts"]) == 2
    assert spells["idle_ns"] == 9 * S


def test_a_path_of_json_and_a_column_of_parquet_name_parts(tmp_path: Path) -> None:
    events = [(BEGIN + i - 3 * (i % 2), i % 2) for i in range(100)]
    lines = "".join(json.dumps({"ts": at, "at": {"device.no": part}}) + "\n" for at, part in events)
    (tmp_path / "f.jsonl").write_text(lines.replace('"device.no"', '"device"'))
    pq.write_table(
        pa.table({"ts": [at for at, _ in events], "line": [part for _, part in events]}), tmp_path / "f.parquet"
    )
    for file, by, column in (
        (tmp_path / "f.jsonl", "at.device", "at_device"),
        (tmp_path / "f.parquet", "line", "my_line"),
    ):
        by_part = analyze(file, "--by", by, "--json").json["by_part"]
        assert (by_part["column"], by_part["out_of_order"]) == (column, 0)
        assert [(one["part"], one["events"]) for one in by_part["parts"]] == [("0", 50), ("1", 50)]


def test_a_profile_keeps_the_parts(merged: Path, tmp_path: Path) -> None:
    assert analyze(merged, "--by", "part", "--profile", str(tmp_path / "p.json")).code == 0
    profile: dict[str, Any] = json.loads((tmp_path / "p.json").read_text())
    (of_b,) = (one for one in profile["by_part"]["parts"] if one["part"] == "b")
    assert of_b["watermark_curve"] == [[0, 0]]
    assert [one["overtaken"] for one in profile["by_part"]["parts"]] == [5998, 0, 0]  # a is first at each time
    assert of_b["event_time"] == {"min": BEGIN * S, "max": (BEGIN + 2999) * S}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--by", "none"), ("none", "ts", "part")),
        (("--idle", "3s"), ("--idle: found 3s without --by, allowed: with --by COLUMN",)),
        (("--by", "part", "--idle", "soon"), ("idle", "'soon'")),
    ],
)
def test_mistakes(merged: Path, more: tuple[str, ...], said: tuple[str, ...]) -> None:
    analyze(merged, *more).refused(*said)


def test_too_many_parts_are_refused(tmp_path: Path) -> None:
    rows = [(BEGIN + i, f"user{i}") for i in range(10_001)]
    analyze(written(tmp_path / "f.csv", rows), "--by", "part").refused(
        "by: found more than 10,000 values of part, allowed: at most 10,000"
    )
