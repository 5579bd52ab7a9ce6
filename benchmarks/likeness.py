"""Shows how alike streams made from a profile are to the real one: delays in outages, and delays of each event.

    .venv/bin/python -m benchmarks.likeness [--seeds 5] [--json]

The real streams are the flights of January 2013 by carrier, in the order of their departure, and the earthquakes by the
network that reports them, in the order of their last update (tests/data). Each is analyzed as it came. Then its events
are sorted by event time, and put out of order again: by outages that are fitted to the profile (`like`), and by
delays that are drawn from its histogram (`empirical`), with the same part of the events out of order. The table has
medians over the seeds.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from streamgauge.base.units import Duration, show_ticks
from streamgauge.catalog.artifacts import ScratchStore
from streamgauge.config import Experiment, Source, parse
from streamgauge.records.manifests import StreamManifest
from streamgauge.records.profile import Profile
from streamgauge.records.validation import Disorder, Likeness
from streamgauge.streams.keys import Scaled
from streamgauge.streams.stages import analyze, by_part, generate, ingest
from streamgauge.streams.stages.likeness import compare
from streamgauge.streams.stages.workers import Forked

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
FLIGHTS = {
    "files": str(DATA / "nycflights13_jan_by_actual_departure.csv.gz"),
    "time": {"column": "sched", "format": "%Y-%m-%d %H:%M:%S"},
}


@dataclass(frozen=True)
class Real:
    """A real stream: how it is read, which column has its parts, and the longest delay."""

    name: str
    source: Mapping[str, object]
    by: str
    longest: str


def reals(folder: Path) -> Iterator[Real]:
    yield Real("flights by carrier", FLIGHTS, "carrier", "22h")
    with gzip.open(DATA / "usgs_quakes_by_update.csv.gz", "rt") as packed:
        rows = list(csv.DictReader(packed))
    file = folder / "quakes.csv"
    file.write_text("time_ms,net\n" + "".join(f"{row['time_ms']},{network(row['id'])}\n" for row in rows))
    source = {"files": str(file), "time": {"column": "time_ms", "unit": "ms"}}
    yield Real("earthquakes by network", source, "net", "7d")


def network(number: str) -> str:
    """The network that an earthquake's number begins with, such as nc of nc72959481."""
    found = re.match(r"[a-z]+", number)
    return found[0] if found else ""


def source_of(real: Real, **more: object) -> Scaled:
    raw = {**real.source, "columns": {real.by: "string"}, "by": real.by, **more}
    return Scaled(parse(Source, raw, real.name))


def likenesses(real: Real, seeds: int, folder: Path) -> dict[str, list[Likeness]]:
    """Compares streams made in both ways with the real one, for each seed."""
    workers, store = Forked(), ScratchStore(folder)
    as_it_came, sorted_by_time = source_of(real), source_of(real, order="event_time")
    ingest.run(workers, as_it_came, store)
    ingest.run(workers, sorted_by_time, store)
    file = analyze.run(workers, as_it_came, store).file("profile.json")
    profile = Profile.read(file)
    late = profile.out_of_order or 0
    ways = {
        "outages": {"max": real.longest, "outages": {"by": real.by, "like": str(file)}},
        "scattered": {"max": real.longest, "distribution": "empirical", "profile": str(file)},
    }
    found: dict[str, list[Likeness]] = {}
    for way, delay in ways.items():
        for seed in range(seeds):
            raw = {
                "name": way, "seed": seed, "delay": delay,
                "target_percent": 100 * late / profile.events, "on_infeasible": "closest",
            }  # fmt: skip
            experiment = parse(Experiment, raw, real.name)
            stream = generate.run(workers, sorted_by_time, store, experiment)
            made = stream.read(StreamManifest)
            parts = by_part.measure(workers, stream, by_part.Parts(real.by), Duration(0), made.tick)
            found.setdefault(way, []).append(compare(str(file), profile, made, parts))
    return found


def row_of(disorders: list[Disorder]) -> list[str]:
    def middle(name: str, of: str) -> float:
        return median(float(getattr(getattr(one, of), name) or 0) for one in disorders)

    delays = [show_ticks(middle(name, "delay"), "ns") for name in ("p50", "p90", "p99", "max")]
    bursts = [f"{middle(name, 'bursts'):,.3g}" for name in ("mean", "p50", "p90", "p99", "max")]
    share = median(100 * one.out_of_order / one.events for one in disorders)
    return [f"{share:.2f}", *delays, *bursts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="streams of each kind")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {real.name: likenesses(real, args.seeds, Path(folder)) for real in reals(Path(folder))}
    if args.json:
        print(
            json.dumps(
                {name: {way: [one.to_json() for one in of] for way, of in ways.items()} for name, ways in found.items()}
            )
        )
        return
    for name, ways in found.items():
        table = Table(title=name)
        for column in (
            "stream", "out of order, %", "delay p50", "p90", "p99", "max", "burst mean", "p50", "p90", "p99", "max",
            "delays differ", "curves differ", "parts differ",
        ):  # fmt: skip
            table.add_column(column)
        table.add_row("real", *row_of([ways["outages"][0].given]), "", "", "")
        for way, alike in ways.items():
            distances = [
                f"{median(getattr(one, f'{kind}_distance') for one in alike):.3f}"
                for kind in ("delay", "curve", "part")
            ]
            table.add_row(way, *row_of([one.made for one in alike]), *distances)
        Console(width=200).print(table)


if __name__ == "__main__":
    main()
