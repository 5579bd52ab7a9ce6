"""Tries advice on streams whose later part it has not seen: does the delay keep its promise there?

    .venv/bin/python -m benchmarks.promises [--seeds 20] [--only NAME] [--own FILE --window 10m --share 2]

Each stream is cut after 70 % of its events. The advice sees the first part, and its delay is tried on the rest, block
by block. So is the naive delay: the smallest one that keeps the promise on the first part as a whole.
Made streams have delays of a known character. Real ones are those of tests/data. --own: a file with one event time a
line, in whole seconds, in order of arrival.

advised: first parts that got an advice. held: later blocks in which the promise held, of all streams with an advice.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from streamgauge.base.units import Duration, show_ticks
from streamgauge.catalog.artifacts import ScratchStore
from streamgauge.config import Source, parse
from streamgauge.records.advice import Advice, Question
from streamgauge.streams.advice import promise
from streamgauge.streams.advice.pieces import cut
from streamgauge.streams.advice.slack import enough, judged
from streamgauge.streams.advice.windows import Values
from streamgauge.streams.disorder.definitions import BEFORE_ALL, Times
from streamgauge.streams.disorder.row_groups import read_times, row_groups
from streamgauge.streams.keys import Scaled
from streamgauge.streams.stages import advise, ingest
from streamgauge.streams.stages.workers import Forked

SECOND, MINUTE, HOUR = 10**9, 60 * 10**9, 3600 * 10**9
#: the part of a stream that the advice sees
SEEN = 0.7
EVENTS = 60_000
DATA = Path(__file__).resolve().parents[1] / "tests" / "data"


@dataclass(frozen=True)
class Stream:
    """A stream as it came: event times in ns, the question, and the share that may be lost."""

    name: str
    times: Times
    length: int
    share: float


def arrived(events: Times, delays: Times) -> Times:
    """The event times in the order in which the events arrive."""
    return events[np.argsort(events + delays, kind="stable")]


def _delays(draw: np.random.Generator, character: str, events: Times) -> Times:
    """Delays of a known character for one event a second."""
    part = np.arange(len(events)) / len(events)
    base = draw.exponential(30.0, len(events))
    if character == "long tails":
        base = 5 * (1 + draw.pareto(1.3, len(events)))
    elif character == "outages":
        begins = np.sort(draw.uniform(0, len(events), len(events) // 1500))
        ends = begins + draw.exponential(120.0, len(begins))
        down = np.searchsorted(begins, np.arange(len(events)), side="right") - 1
        left = np.where(down >= 0, ends[down] - np.arange(len(events)), 0.0)
        base = np.where((left > 0) & (draw.random(len(events)) < 0.5), left, base / 10)
    elif character == "daily":
        base *= 1 + 0.9 * np.sin(2 * np.pi * np.arange(len(events)) / 8_640)
    elif character == "growing":
        base *= 1 + 2 * part
    elif character == "doubled at a moment":
        base *= np.where(part > draw.uniform(0.2, 0.9), 2, 1)
    return (base * SECOND).astype(np.int64)


CHARACTERS = ("steady", "long tails", "outages", "daily", "growing", "doubled at a moment")


def made(seeds: int) -> Iterator[Stream]:
    for character in CHARACTERS:
        for seed in range(seeds):
            draw = np.random.default_rng((seed, CHARACTERS.index(character)))
            events = np.arange(EVENTS) * SECOND + 1_700_000_000 * SECOND
            yield Stream(character, arrived(events, _delays(draw, character, events)), MINUTE, 0.01)


def real() -> Iterator[Stream]:
    flights = {"column": "sched", "format": "%Y-%m-%d %H:%M:%S"}
    for name, file, time, length, share in (
        ("flights of January", "nycflights13_jan_by_actual_departure.csv.gz", flights, HOUR, 0.01),
        ("flights of a year", "nycflights13_by_actual_departure.csv.gz", flights, HOUR, 0.01),
        ("flights of a year", "nycflights13_by_actual_departure.csv.gz", flights, HOUR, 0.001),
        ("earthquakes", "usgs_quakes_by_update.csv.gz", {"column": "time_ms", "unit": "ms"}, HOUR, 0.1),
    ):
        with TemporaryDirectory() as folder:
            source = parse(Source, {"files": str(DATA / file), "time": time}, "source")
            events = ingest.run(Forked(), Scaled(source), ScratchStore(Path(folder)), lines=False)
            yield Stream(name, read_times(row_groups(events.files())), length, share)


def advice_on(stream: Stream, times: Times) -> Advice:
    question = Question(
        answers="tumbling", length=stream.length, slide=stream.length, target="lost", share=stream.share
    )
    with TemporaryDirectory() as folder:
        file = Path(folder) / "part.parquet"
        pq.write_table(pa.table({"event_time": times}), file, row_group_size=125_000)
        return advise.of_files(Forked(), [file], "ns", question)


@dataclass(frozen=True)
class Tried:
    """Later blocks of a stream: the loss of each at the advised delay, and at the naive one."""

    delay: int | None
    tests: int
    held: int
    naive: int
    lost: tuple[float, ...]
    naive_lost: tuple[float, ...]


def tried(stream: Stream) -> Tried:
    seen = int(SEEN * len(stream.times))
    advice = advice_on(stream, stream.times[:seen])
    slack = judged(stream.times, BEFORE_ALL, advice.question).slack
    naive = enough(slack[:seen], int(stream.share * seen), "ns")
    blocks = promise.blocks_for(seen, stream.share) or promise.LEAST_BLOCKS
    later = [
        slack[seen:][one.start : one.stop] for one in cut(len(slack) - seen, max(1, round(blocks * (1 / SEEN - 1))))
    ]

    def lost(delay: int) -> tuple[float, ...]:
        return tuple(float((block >= delay).mean()) for block in later)

    best = advice.advised
    if best is None:
        return Tried(None, 0, 0, naive, (), lost(naive))
    return Tried(best.delay, best.tests, best.held, naive, lost(best.delay), lost(naive))


def row(name: str, streams: list[Stream]) -> tuple[str, ...]:
    share = streams[0].share
    each = [tried(stream) for stream in streams]
    advised = [one for one in each if one.delay is not None]
    lost = np.array([rate for one in each for rate in one.lost])
    naive_lost = np.array([rate for one in each for rate in one.naive_lost])

    def figures(rates: Values) -> tuple[str, ...]:
        if not len(rates):
            return "", "", ""
        return f"{np.mean(rates <= share):.0%}", f"{100 * np.median(rates):.2g} %", f"{100 * rates.max():.2g} %"

    tests = f"{sum(one.held for one in advised)} of {sum(one.tests for one in advised)}" if advised else ""
    delay = (
        show_ticks(float(np.median([one.delay for one in advised if one.delay is not None])), "ns") if advised else ""
    )
    return (
        name, f"{100 * share:g} %", f"{len(advised)} of {len(each)}", tests, *figures(lost), delay,
        *figures(naive_lost), show_ticks(float(np.median([one.naive for one in each])), "ns"),
    )  # fmt: skip


def own(file: str, length: str, share: float) -> Stream:
    times = np.array([int(line) for line in Path(file).read_text().split()], np.int64) * SECOND
    return Stream(Path(file).stem, times, Duration.parse(length).to("ns"), share / 100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", default="", help="only streams whose name contains this")
    parser.add_argument("--own", help="a file of your own")
    parser.add_argument("--window", default="10m", help="of --own")
    parser.add_argument("--share", type=float, default=1.0, help="of --own, in percent")
    args = parser.parse_args()
    streams = [own(args.own, args.window, args.share)] if args.own else [*real(), *made(args.seeds)]
    table = Table(title=f"cut after {SEEN:.0%} of the events; then block by block")
    table.add_column("stream")
    for name in ("promise", "advised", "tests held", "held later", "median lost", "worst", "delay",
                 "naive held", "median lost", "worst", "delay"):  # fmt: skip
        table.add_column(name, justify="right")
    groups: dict[tuple[str, float], list[Stream]] = {}
    for stream in streams:
        if args.own or args.only in stream.name:
            groups.setdefault((stream.name, stream.share), []).append(stream)
    for (name, _), some in groups.items():
        table.add_row(*row(name, some))
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
