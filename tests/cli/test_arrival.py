"""Arrival times that are written in another way than event times, and recorded delays that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Answer, Call, run

#: event time in ms; arrival 5 ms later, in us; arrival 100 s later, in s
ROWS = "".join(
    f"{1_700_000_000_000 + 10 * i},{(1_700_000_000_005 + 10 * i) * 1000},{1_700_000_100 + i}\n" for i in range(100)
)


def analyze(tmp_path: Path, *more: str) -> Answer:
    (tmp_path / "f.csv").write_text("t,came,s\n" + ROWS)
    return run(Call(["analyze", str(tmp_path / "f.csv"), "--time", "t", "--unit", "ms", *more]))


def test_arrival_has_a_unit_of_its_own(tmp_path: Path) -> None:
    found = analyze(tmp_path, "--arrival", "came", "--arrival-unit", "us", "--json")
    recorded = found.json["recorded_delay_ns"]
    assert (recorded["min"], recorded["max"], recorded["negative"]) == (5_000_000, 5_000_000, 0)
    assert "warning" not in found.err


def test_arrival_times_that_cannot_be_are_a_warning(tmp_path: Path) -> None:
    found = analyze(tmp_path, "--arrival", "came", "--json")
    assert found.code == 0
    assert "warning: none of 100 arrival times can be read; check --arrival, --arrival-unit" in found.err


def test_a_delay_beyond_the_stream_is_a_warning(tmp_path: Path) -> None:
    found = analyze(tmp_path, "--arrival", "2", "--arrival-unit", "s", "--json")
    assert "warning: half of the events arrive later than 990 ms, which is the stream's length; check" in found.err


def test_most_events_before_their_own_time_are_a_warning(tmp_path: Path) -> None:
    found = analyze(tmp_path, "--arrival", "came", "--arrival-unit", "ns")
    assert "warning: 100 of 100 events arrive before their own time; check --arrival, --arrival-unit" in found.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--arrival-unit", "us"], "--arrival: this option is missing"),
        (["--arrival", "came", "--arrival-unit", "sec"], "--arrival-unit: found 'sec', allowed: 'ps'"),
        (["--arrival", "came", "--arrival-format", "%Q"], "--arrival-format: found %Q in '%Q', allowed: %Y"),
    ],
)
def test_mistakes(tmp_path: Path, more: list[str], said: str) -> None:
    analyze(tmp_path, *more).refused(said)
