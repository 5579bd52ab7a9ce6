"""Measures of events as they are in their files: the same wherever ingest runs, whatever order it gives them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from streamgauge.catalog.artifacts import Store
from streamgauge.records.profile import Hint, InFile
from streamgauge.streams.stages import analyze, in_file, ingest
from streamgauge.streams.stages.workers import Forked
from streamgauge.streams.text.sample import sample
from tests.command import Call, run
from tests.conftest import ROOT, everywhere_with
from tests.spark.ingesting import benchmark, written

if TYPE_CHECKING:
    from streamgauge.streams.stages.workers import Workers

NOW = 1_767_225_600


def files(folder: Path) -> list[Path]:
    """Two files; line 3 of each is bad, and line 22 of the second is of 1970."""
    lines = [str(NOW + i) for i in range(60)]
    lines[1] = lines[31] = "bad"
    lines[50] = "8"
    texts = ["\n".join(["t", *lines[at : at + 30]]) + "\n" for at in (0, 30)]
    return [written(folder / f"{name}.csv", text) for name, text in zip("ab", texts, strict=True)]


def measured(workers: Workers, root: Path, sources: list[Path], **source: Any) -> InFile:
    events = ingest.run(workers, benchmark(sources, **source), Store(root), split_bytes=100)
    profile = analyze.measure(workers, events)
    assert profile.to_json()["in_file"] == events.manifest["in_file"]
    return profile.in_file


@everywhere_with("order", "file", "event_time")
def test_lines_and_counts(workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    monkeypatch.setattr(in_file, "_FEW", 1)  # tasks do all of it
    hint = Hint(
        kind="clock_at_1970",
        text=f"1 event (line 22 of {tmp_path / 'b.csv'}) is at 1970-01-01T00:00:08Z, as of a clock that is not set, "
        "and the others in 2026; without it 0 of 57 are out of order",
        lines=(22,),
        files=(str(tmp_path / "b.csv"),),
        events=1,
        without=0,
        enough_without=0,
    )
    found = measured(workers, tmp_path / "store", files(tmp_path), order=order)
    assert found == InFile(events=58, out_of_order=1, hints=(hint,))


def test_what_analyze_and_generate_print(tmp_path: Path) -> None:
    file = written(tmp_path / "f.csv", "t\n" + "".join(f"{NOW + i + 7200 * (i == 50)}\n" for i in range(200)))
    options = [str(file), "--time", "t", "--unit", "s"]
    said = "1 event (line 52) is ahead, by 120 min, and makes 149 later ones late; without it 0 of 199 are out of order"
    shown = run(Call(["analyze", *options, "--order", "event_time"])).out
    assert "event time          2026-01-01T00:00:00Z to 2026-01-01T02:00:50Z\n" in shown
    assert "out of order        0  (0.0000 %)\n  as in the file    149  (74.5000 %)\n" in shown
    assert f"hint                {said}\n" in shown
    facts = run(Call(["analyze", *options, "--json"])).json
    assert facts["hints"] == [
        {
            "kind": "ahead", "text": said, "lines": [52], "files": [], "events": 1, "without": 0, "part": None,
            "enough_without_ns": 0,
        }
    ]  # fmt: skip
    assert facts["event_time"] == {"first": "2026-01-01T00:00:00Z", "last": "2026-01-01T02:00:50Z"}
    assert facts["event_time_ns"] == {"first": NOW * 10**9, "last": (NOW + 7250) * 10**9}
    assert facts["enough_delay_ns"] == {"1 %": 7197 * 10**9, "0.1 %": 7199 * 10**9, "none": 7199 * 10**9}
    made = run(
        Call(["generate", *options, "--target", "80", "--seed", "1", "--out", str(tmp_path / "out"), "--max", "9s"])
    )
    assert f"hint: {said}\n" in made.err


def test_what_init_and_check_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [str(NOW + i if i % 10 == 0 else (NOW + i) * 1000) for i in range(100)]
    written(tmp_path / "mixed.csv", "ts,v\n" + "".join(f"{row},{i}\n" for i, row in enumerate(rows)))
    said = (
        "90 times are in 2026, 10 in 1970 (lines 2, 12, 22, 32, 42 and 5 more), which are seconds, not milliseconds; "
        "without them 0 of 90 are out of order"
    )
    assert f"hint      {said}\n" in run(Call(["init", "mixed.csv"])).out
    assert said in run(Call(["check", "mixed.yaml"])).out
    shown = json.loads(run(Call(["check", "mixed.yaml", "--json"])).out)["sample"]["hints"]
    assert [(hint["kind"], hint["text"], hint["lines"]) for hint in shown] == [("two_units", said, [2, 12, 22, 32, 42])]


@pytest.mark.parametrize(
    ("time", "odd", "wanted"),
    [
        ({"unit": "s"}, str(NOW * 1000), ("two_units", "are milliseconds, not seconds")),
        ({"unit": "s"}, str(NOW * 10**9), ("two_units", "are nanoseconds, not seconds")),
        ({"unit": "ms"}, str(NOW * 10**6), ("two_units", "are microseconds, not milliseconds")),
        ({"unit": "s"}, "123456789012345", ("beyond_range", "are before the year 1678 or after 2261")),
        ({"iso": True}, "9999-12-31T23:59:59Z", ("beyond_range", "are before the year 1678 or after 2261")),
        ({"iso": True}, "0001-01-01T00:00:00Z", ("beyond_range", "are before the year 1678 or after 2261")),
    ],
)
def test_times_that_do_not_fit(tmp_path: Path, time: dict[str, Any], odd: str, wanted: tuple[str, str]) -> None:
    good = str(NOW * {"s": 1, "ms": 1000}[time["unit"]]) if "unit" in time else "2026-01-01T00:00:00Z"
    file = written(tmp_path / "f.csv", "".join(f"{row}\n" for row in ["t", *[good, odd] * 3, "x", *[good] * 9]))
    kind, what = wanted
    hint = Hint(
        kind=kind, text=f"3 times (lines 3, 5, 7) {what}; they are left out as bad lines", lines=(3, 5, 7), events=3
    )
    made = benchmark(file, time={"column": "t", **time})
    assert measured(Forked(), tmp_path / "store", [file], time={"column": "t", **time}).hints[-1:] == (hint,)
    assert sample(made.source).hints[-1:] == (hint,)


#: zone, and a second close to which its clocks are put forward
FORWARD = [
    ("Europe/Berlin", "2025-03-30T01:00:00"), ("Europe/London", "2025-03-30T01:00:00"),
    ("America/New_York", "2025-03-09T07:00:00"), ("Australia/Lord_Howe", "2025-10-04T15:30:00"),
    ("America/Sao_Paulo", "2018-11-04T03:00:00"), ("Asia/Kolkata", "2025-03-30T01:00:00"),
    ("UTC", "2025-03-30T01:00:00"),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "around"), FORWARD)
@pytest.mark.parametrize("written_as", ["%Y-%m-%d %H:%M:%S", "%d.%m.%Y %H.%M.%S,%f", "iso", "iso with offset"])
def test_hours_that_a_zone_skips(tmp_path: Path, zone: str, around: str, written_as: str) -> None:
    """Python's own zones are the oracle: a local time exists if it comes back from UTC as it was."""
    draw = Random(7)
    begin = datetime.fromisoformat(around) - timedelta(hours=15)
    local = sorted(begin + timedelta(minutes=draw.randrange(30 * 60), seconds=draw.randrange(60)) for _ in range(400))
    lines = [2 + n for n, at in enumerate(local) if at.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
             .astimezone(ZoneInfo(zone)).replace(tzinfo=None) != at]  # fmt: skip
    if written_as.startswith("iso"):
        time: dict[str, Any] = {"column": "t", "iso": True, "zone": zone}
        texts = [f"{at.isoformat()}{'Z' if 'offset' in written_as else ''}" for at in local]
        lines = lines if written_as == "iso" else []
    else:
        time = {"column": "t", "format": written_as, "zone": zone}
        texts = [at.strftime(written_as) for at in local]
    file = written(tmp_path / "f.csv", "t;n\n" + "".join(f"{text};{n}\n" for n, text in enumerate(texts)))
    told = [
        hint for hint in sample(benchmark(file, time=time, separator=";").source).hints if hint.kind == "hour_skipped"
    ]
    assert [(hint.events, hint.lines) for hint in told] == ([(len(lines), tuple(lines[:5]))] if lines else [])
    if lines:
        assert f"times do not exist in {zone} (lines {lines[0]}, {lines[1]}" in told[0].text


def test_a_skipped_hour_in_several_files_and_tasks(tmp_path: Path) -> None:
    hours = [f"2025-03-30T{hour:02}:30:00" for hour in range(12)]
    sources = [written(tmp_path / f"{name}.csv", "\n".join(["t", *hours]) + "\n") for name in "ab"]
    time = {"column": "t", "iso": True, "zone": "Europe/Berlin"}
    *_, hint = measured(Forked(), tmp_path / "store", sources, time=time).hints
    assert (hint.kind, hint.events, hint.lines) == ("hour_skipped", 2, (4, 4))
    assert hint.files == tuple(map(str, sources))


def test_a_date_alone_is_no_skipped_hour(tmp_path: Path) -> None:
    """Clocks were put forward at midnight there."""
    days = "".join(f"2018-11-{day:02}\n" for day in range(1, 9))
    file = written(tmp_path / "f.csv", "t\n" + days)
    time = {"column": "t", "format": "%Y-%m-%d", "zone": "America/Sao_Paulo"}
    assert sample(benchmark(file, time=time).source).hints == ()


def test_departures_give_no_hint(tmp_path: Path) -> None:
    """More than half of them are out of order, for the right reasons."""
    columns = {
        key: {"column": name, "format": "%Y-%m-%d %H:%M:%S"} for key, name in (("time", "sched"), ("arrival", "actual"))
    }
    for order in ("file", "event_time"):
        flights = [ROOT / "configs" / "data" / "flights_2013_01.csv.gz"]
        found = measured(Forked(), tmp_path / order, flights, order=order, **columns)
        assert found == InFile(events=26_475, out_of_order=14_878)
