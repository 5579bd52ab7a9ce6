"""Ingest and analyze on real data sets: the figures that their README states, and DuckDB's, without Streamgauge."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from streamgauge.catalog.artifacts import Store
from streamgauge.records.profile import Profile
from streamgauge.streams.stages import analyze, ingest
from streamgauge.streams.stages.analyze import measure
from tests.conftest import DATA, ROOT, unpacked
from tests.spark.ingesting import benchmark

if TYPE_CHECKING:
    from streamgauge.streams.stages.workers import Workers

MS = 10**6
MINUTE = 60_000 * MS
SCHEDULE = {"column": "sched", "format": "%Y-%m-%d %H:%M:%S"}
COMMITS: dict[str, Any] = {
    "time": {"column": 0, "format": "%a, %d %b %Y %H:%M:%S %z"},
    "header": False,
    "separator": "|",
}


def profile(workers: Workers, root: Path, file: Path, **source: Any) -> dict[str, Any]:
    return measure(workers, ingest.run(workers, benchmark(file, **source), Store(root), split_bytes=200_000)).to_json()


def late_by_duckdb(file: Path, time: str) -> tuple[int, int]:
    """(events, events below the largest time before them) of a CSV file; time: SQL over its columns."""
    with duckdb.connect() as base:
        base.execute("set threads = 1")
        base.execute(f"create table events as select row_number() over () as n, {time} as t from read_csv('{file}')")
        before = "max(t) over (order by n rows between unbounded preceding and 1 preceding)"
        (found,) = base.execute(
            f"select count(*), count(*) filter (t < latest) from (select t, {before} as latest from events)"
        ).fetchall()
    return found


@pytest.mark.parametrize(
    ("name", "source", "sql", "events", "late", "delays"),
    [
        ("nycflights13_by_actual_departure.csv.gz", {"time": SCHEDULE}, "sched", 328_521, 194_327,
         (10 * MINUTE, 210 * MINUTE, 1_300 * MINUTE)),
        ("nycflights13_jan_by_actual_departure.csv", {"time": SCHEDULE}, "sched", 26_475, 14_878,
         (10 * MINUTE, 195 * MINUTE, 1_300 * MINUTE)),
        ("usgs_quakes_by_update.csv", {"time": {"column": "time_ms", "unit": "ms"}}, "time_ms", 1_707, 1_295,
         (31_283_780 * MS, 373_819_560 * MS, 575_377_336 * MS)),  # its README interpolates p99: 362,202 s
        ("commits.txt.gz", COMMITS, None, 4_916, 4_915, None),
    ],
)  # fmt: skip
def test_counts_and_delays_of_every_file(
    workers: Workers,
    tmp_path: Path,
    name: str,
    source: dict[str, Any],
    sql: str | None,
    events: int,
    late: int,
    delays: tuple[int, int, int] | None,
) -> None:
    file = DATA / name if name.endswith(".gz") else unpacked(name, tmp_path)
    found = profile(workers, tmp_path, file, **source)
    assert (found["events"], found["out_of_order"], found["quarantined"]) == (events, late, 0)
    kinds = [hint["kind"] for hint in found["in_file"]["hints"]]
    assert kinds == (["newest_first"] if name == "commits.txt.gz" else [])
    if sql is not None:
        assert late_by_duckdb(file, sql) == (events, late)
    if delays is not None:
        assert tuple(found["delay"][key] for key in ("p50", "p99", "max")) == delays  # nearest rank


def test_each_carrier_alone(workers: Workers, tmp_path: Path) -> None:
    """16 parts in several row groups, against DuckDB's windows."""
    file = ROOT / "configs" / "data" / "flights_2013_01.csv.gz"
    given = benchmark(file, time=SCHEDULE, columns={"carrier": "string"}, by="carrier")
    ingest.run(workers, given, Store(tmp_path), split_bytes=200_000)
    profile = Profile.read(analyze.run(workers, given, Store(tmp_path)).file("profile.json"))
    assert profile.by_part is not None
    measured = [
        (one.part, one.events, one.out_of_order, one.delay.max or 0, one.behind.max, one.longest_idle, one.idle_spells)
        for one in profile.by_part.parts
    ]
    with duckdb.connect() as base:
        base.execute("set threads = 1")
        base.execute(
            "create table events as select n, t, p, max(t) over (order by n) as whole, "
            "max(t) over (partition by p order by n) as own, lag(n) over (partition by p order by n) as previous "
            "from (select row_number() over () as n, epoch_ns(sched) as t, carrier as p "
            f"from read_csv('{file}'))"
        )
        rows = base.execute(
            "with gaps as (select e.p, before.whole - coalesce(last.whole, before.whole) as gap from events e "
            "left join events before on before.n = e.n - 1 left join events last on last.n = e.previous "
            "union all select p, (select max(t) from events) - max(whole) from events group by p) "
            "select e.p, count(*), count(*) filter (t < own), max(own - t), max(whole - own), "
            f"(select max(gap) from gaps g where g.p = e.p), "
            f"(select count(*) from gaps g where g.p = e.p and gap > {60 * 10**9}) "
            "from events e group by e.p order by e.p"
        ).fetchall()
    assert measured == rows
    assert [(hint.kind, hint.part) for hint in profile.hints] == []


def test_a_year_of_departures_in_their_own_zone_names_no_hour(workers: Workers, tmp_path: Path) -> None:
    """New York has an hour twice and skips one within these; nothing departs then."""
    zoned = {**SCHEDULE, "zone": "America/New_York"}
    found = profile(workers, tmp_path, DATA / "nycflights13_by_actual_departure.csv.gz", time=zoned)
    assert (found["events"], found["in_file"]["hints"]) == (328_521, [])


def test_the_commits_in_the_order_in_which_they_were_made(workers: Workers, tmp_path: Path) -> None:
    with gzip.open(DATA / "commits.txt.gz", "rt") as handle:
        lines = handle.read().splitlines()
    (tmp_path / "reversed.txt").write_text("\n".join(reversed(lines)) + "\n")
    found = profile(workers, tmp_path, tmp_path / "reversed.txt", **COMMITS)
    assert (found["events"], found["out_of_order"]) == (4_916, 42)
