"""Ingest and analyze on the real data sets: the figures that their README states, computed without Streamgauge."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from streamgauge.catalog.artifacts import Store
from streamgauge.spark import ingest
from streamgauge.spark.analyze import measure
from tests.conftest import ROOT
from tests.spark.ingesting import benchmark

if TYPE_CHECKING:
    from streamgauge.spark.workers import Workers

SHARED = ROOT.parent / "shared" / "data"
pytestmark = [
    pytest.mark.skipif(not SHARED.is_dir(), reason="the real data sets lie beside the repository, not in it"),
]
MS = 10**6
MINUTE = 60_000 * MS
SCHEDULE = {"column": "sched", "format": "%Y-%m-%d %H:%M:%S"}
COMMITS: dict[str, Any] = {
    "time": {"column": 0, "format": "%a, %d %b %Y %H:%M:%S %z"},
    "header": False,
    "separator": "|",
}


def profile(workers: Workers, root: Path, file: Path, **source: Any) -> dict[str, Any]:
    return measure(workers, ingest.run(workers, benchmark(file, **source), Store(root), split_bytes=200_000))


@pytest.mark.parametrize(
    ("name", "source", "events", "late", "delays"),
    [
        ("nycflights13_by_actual_departure.csv.gz", {"time": SCHEDULE}, 328_521, 194_327,
         (10 * MINUTE, 210 * MINUTE, 1_300 * MINUTE)),
        ("nycflights13_jan_by_actual_departure.csv", {"time": SCHEDULE}, 26_475, 14_878,
         (10 * MINUTE, 195 * MINUTE, 1_300 * MINUTE)),
        ("usgs_quakes_by_update.csv", {"time": {"column": "time_ms", "unit": "ms"}}, 1_707, 1_295,
         (31_283_780 * MS, 373_819_560 * MS, 575_377_336 * MS)),  # its README interpolates p99: 362,202 s
        ("commits.txt.gz", COMMITS, 4_916, 4_915, None),
    ],
)  # fmt: skip
def test_counts_and_delays_of_every_file(
    workers: Workers,
    tmp_path: Path,
    name: str,
    source: dict[str, Any],
    events: int,
    late: int,
    delays: tuple[int, int, int] | None,
) -> None:
    found = profile(workers, tmp_path, SHARED / name, **source)
    assert (found["events"], found["out_of_order"], found["quarantined"]) == (events, late, 0)
    kinds = [hint["kind"] for hint in found["in_file"]["hints"]]
    assert kinds == (["newest_first"] if name == "commits.txt.gz" else [])
    if delays is not None:
        assert tuple(found["delay"][key] for key in ("p50", "p99", "max")) == delays  # nearest rank


def test_the_commits_in_the_order_in_which_they_were_made(workers: Workers, tmp_path: Path) -> None:
    with gzip.open(SHARED / "commits.txt.gz", "rt") as handle:
        lines = handle.read().splitlines()
    (tmp_path / "reversed.txt").write_text("\n".join(reversed(lines)) + "\n")
    found = profile(workers, tmp_path, tmp_path / "reversed.txt", **COMMITS)
    assert (found["events"], found["out_of_order"]) == (4_916, 42)
