"""A small sound stream made the slow and obvious way, and its writing as artifacts, for tests that corrupt it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge import config
from streamgauge.base.schemas import events_schema, stream_schema
from streamgauge.catalog.artifacts import Artifact
from tests import manifests
from tests.oracle import naive

Row = dict[str, Any]
DELAY_MIN, DELAY_MAX, PERCENT = 50, 2000, 30  # ns, ns, percent of the events
GROUP_ROWS = 13
COLUMNS = {"carrier": "string", "flight": "int64"}
BENCHMARK = config.parse(
    config.Benchmark,
    {
        "name": "tiny",
        "source": {"files": "nowhere.csv", "time": {"column": 0}, "arrival": {"column": 1}, "columns": COLUMNS},
        "experiments": [
            {
                "name": "late30",
                "target_percent": PERCENT,
                "delay": {"min": f"{DELAY_MIN}ns", "max": f"{DELAY_MAX}ns"},
            }
        ],
    },
    "test",
)


@dataclass
class Case:
    """Events and a stream of them as rows, before they are written."""

    events: list[Row]
    stream: list[Row]
    claims: dict[str, int]  # what the stream's manifest says
    file_order: tuple[int, ...] = (0, 1, 2)
    schemas: dict[str, pa.Schema] = field(
        default_factory=lambda: {
            "events": events_schema(COLUMNS, arrival=True),
            "stream": stream_schema(COLUMNS, arrival=True),
        }
    )
    experiment: config.Experiment = BENCHMARK.experiments[0]

    def base(self, seq: int) -> int:
        latest: int = max(row["event_time"] for row in self.events if row["seq"] <= seq)
        return latest

    def at(self, seq: int) -> Row:
        return next(row for row in self.stream if row["seq"] == seq)

    def sort(self) -> None:
        self.stream.sort(key=lambda row: (row["ingestion_time"], row["seq"]))

    def late(self) -> set[int]:
        """Seqs that are out of order in the stream's own order."""
        flags = naive.out_of_order([row["event_time"] for row in self.stream])
        return {row["seq"] for row, late in zip(self.stream, flags, strict=True) if late}

    def source_late(self) -> set[int]:
        flags = naive.out_of_order([row["event_time"] for row in self.events])
        return {row["seq"] for row, late in zip(self.events, flags, strict=True) if late}

    def delayed(self) -> set[int]:
        source_late = self.source_late()
        return {
            row["seq"]
            for row in self.stream
            if row["seq"] not in source_late and row["ingestion_time"] > self.base(row["seq"])
        }

    def write(self, path: Path) -> tuple[Artifact, Artifact]:
        """Events in two files, the stream in three, each in row groups of GROUP_ROWS."""
        events = _write(path / "events", self.events, self.schemas["events"], (0, 1))
        stream = _write(path / "stream", self.stream, self.schemas["stream"], self.file_order)
        return (
            Artifact("events", "tiny", path / "events", manifests.of_events(files=events, columns=COLUMNS)),
            Artifact("stream", "tiny", path / "stream", manifests.of_stream(files=stream, **self.claims)),
        )


def sound_case(rows: int = 150) -> Case:
    """Naturally disordered events with ties and gaps in seq, and a stream that meets its target exactly."""
    draw = random.Random(7)
    events: list[Row] = []
    time, seq = -300, 0  # times before the epoch too
    for _ in range(rows):
        time += draw.choice((0, 0, 10, 30, 60))
        seq += draw.choice((1, 1, 1, 2))
        late = draw.random() < 0.1
        event_time = time - draw.randrange(1, 120) if late else time
        events.append(
            {
                "seq": seq,
                "event_time": event_time,
                "line": f"{event_time},line {seq}\n".encode(),
                "arrival_time": draw.choice((None, event_time + 5)),
                "carrier": draw.choice((None, "AA", "UA")),
                "flight": draw.choice((None, 1, 2)),
            }
        )
    times = [row["event_time"] for row in events]
    stream = [{"ingestion_time": base, **row} for base, row in zip(naive.bases(times), events, strict=True)]
    case = Case(events, stream, {})
    source_late = case.source_late()
    target = round(PERCENT * rows / 100)
    eligible = [
        row["seq"]
        for row, pinned in zip(events, naive.pinned(times), strict=True)
        if row["seq"] not in source_late and not pinned
    ]
    draw.shuffle(eligible)
    for chosen in eligible:  # one by one, keeping each delay that makes exactly this event late
        late_now = case.late()
        if len(late_now) == target:
            break
        row = case.at(chosen)
        row["ingestion_time"] += draw.randrange(DELAY_MIN, DELAY_MAX + 1)
        case.sort()
        if case.late() != late_now | {chosen}:
            row["ingestion_time"] = case.base(chosen)
            case.sort()
    assert len(case.late()) == target
    case.claims = {
        "duplicates": 0,
        "events": rows,
        "source_out_of_order": len(source_late),
        "target_out_of_order": target,
        "achieved_out_of_order": target,
        "newly_delayed": target - len(source_late),
        "feasible_max": target,
        "delay_min": DELAY_MIN,
        "delay_max": DELAY_MAX,
    }
    return case


def find(candidates: list[Any], wanted: Callable[[Any], bool]) -> Any:
    """The first candidate that is wanted: a mutation must find its victim."""
    return next(candidate for candidate in candidates if wanted(candidate))


def _write(path: Path, rows: list[Row], schema: pa.Schema, order: tuple[int, ...]) -> list[str]:
    path.mkdir(parents=True)
    size = -(-len(rows) // len(order))
    for k in range(len(order)):
        table = pa.Table.from_pylist(rows[k * size : (k + 1) * size], schema)
        pq.write_table(table, path / f"part-{k:05d}.parquet", row_group_size=GROUP_ROWS)
    return [f"part-{k:05d}.parquet" for k in order]
