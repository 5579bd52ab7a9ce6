"""A look at the first lines: what they are read as, and doubts about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.units import moment
from streamgauge.config import Source
from streamgauge.streams.text.sample import sample
from tests.command import Call, run

SECOND = 10**9


def source(path: Path, **more: Any) -> Source:
    return Source.model_validate({"files": str(path), "time": {"column": "t", "unit": "s"}} | more)


def test_the_first_lines_of_the_first_file(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("t\n" + "".join(f"{i}\n" for i in range(2500)) + "end\n")
    found = sample(source(tmp_path / "f.csv"))
    assert (found.lines, found.bad, found.span, found.doubts) == (1000, [], (0, 999 * SECOND), [])


def test_bad_lines_among_them(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("t\n7\nx\n5")
    found = sample(source(tmp_path / "f.csv"))
    assert (found.lines, found.span) == (3, (5 * SECOND, 7 * SECOND))
    assert found.bad == [{"at": 1, "reason": "time is not a number of s", "text": b"x"}]


def test_numbers_without_a_unit_are_refused_before_a_run(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("t\n1700000000\n1700000001\n")
    with pytest.raises(
        UserError, match=r"line 2: time is not ISO-8601: '1700000000'; 2 of 2 .* need source\.time\.unit"
    ):
        sample(source(tmp_path / "f.csv", time={"column": "t"}))


def test_a_header_alone(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("t\n")
    with pytest.raises(UserError, match=r"f\.csv: no line of data"):
        sample(source(tmp_path / "f.csv"))


PATTERN = "%Y%m%d-%H:%M:%S:%f"
DOUBT = (
    "warning: source.time.format: %f reads .7 as 700 ms, and among the first 200 times are fractions of 1 to 3 digits, "
    "some of which end in 0; write %L if they are milliseconds"
)


@pytest.mark.parametrize(
    ("show", "doubts"),
    [
        (lambda ms: str(ms), [DOUBT]),  # not padded
        (lambda ms: f"{ms:03}", []),
        (lambda ms: f"{ms:03}".rstrip("0") or "0", []),  # zeros dropped at the end
        (lambda ms: f"{ms:03}000", []),
    ],
)
def test_fractions_that_may_be_milliseconds_are_doubted(tmp_path: Path, show: Any, doubts: list[str]) -> None:
    (tmp_path / "f.csv").write_text("t\n" + "".join(f"20171223-22:15:29:{show(5 * i)}\n" for i in range(200)))
    assert sample(source(tmp_path / "f.csv", time={"column": "t", "format": PATTERN})).doubts == doubts


def test_milliseconds_that_are_not_padded_have_a_pattern(tmp_path: Path) -> None:
    """Times are in order, where %f finds disorder."""
    (tmp_path / "f.csv").write_text("t\n" + "".join(f"20171223-22:15:29:{5 * i}\n" for i in range(200)))
    options = ["analyze", str(tmp_path / "f.csv"), "--time", "t", "--json", "--format"]
    doubted = run(Call([*options, PATTERN]))
    assert "warning: --format: %f reads .7 as 700 ms" in doubted.err
    assert doubted.json["out_of_order"] > 0
    right = run(Call([*options, PATTERN.replace("%f", "%L")]))
    assert "warning" not in right.err
    assert right.json["out_of_order"] == 0


def test_check_says_what_the_first_lines_are(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("t\n5\nx\n7.25\n")
    (tmp_path / "b.yaml").write_text(
        "name: b\nsource: {files: f.csv, time: {column: t, unit: s}, max_bad_fraction: 0.5}\n"
        "experiments: [{name: e, target_percent: 0}]\n"
    )
    found = run(Call(["check", str(tmp_path / "b.yaml"), "--artifacts", str(tmp_path / "a"), "--json"])).json["sample"]
    times = {"first": "1970-01-01T00:00:05Z", "last": "1970-01-01T00:00:07.25Z"}
    assert found == {
        "lines": 3,
        "events": 2,
        **times,
        "bad_lines": ["time is not a number of s"],
        "doubts": [],
        "hints": [],
    }
    shown = run(Call(["check", str(tmp_path / "b.yaml"), "--artifacts", str(tmp_path / "a")])).out
    assert "2 of 3 lines are events, from 1970-01-01T00:00:05Z to 1970-01-01T00:00:07.25Z" in shown


@pytest.mark.parametrize(
    ("ticks", "tick", "shown"),
    [
        (0, "ns", "1970-01-01T00:00:00Z"),
        (-1, "ns", "1969-12-31T23:59:59.999999999Z"),
        (1_500_000_000_000, "ps", "1970-01-01T00:00:01.5Z"),
        (2**63 - 1, "ns", "2262-04-11T23:47:16.854775807Z"),
        (2**63 - 1, "ps", "1970-04-17T18:02:52.036854775807Z"),
    ],
)
def test_moments(ticks: int, tick: Any, shown: str) -> None:
    assert moment(ticks, tick) == shown
