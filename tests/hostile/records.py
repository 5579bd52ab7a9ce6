"""Records that others wrote, and sound ones in which a bit is another."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from tests.flips import LISTED, SHOWN, flipped, replay_is_refused, sound_files
from tests.hostile.draw import ODD, Draw


def records(random: random.Random) -> Draw:
    sound = {
        "benchmark": "b", "experiment": "e", "workload": "w", "system": "s", "mode": "streaming", "metric": "m_ms",
        "unit": "ms", "value": 1.0, "run_id": "r", "config_hash": "c", "at": "2026-03-01T02:00:00+00:00", "machine": {},
        "software": {}, "version": 1,
    }  # fmt: skip
    lines: list[bytes] = []
    for _ in range(random.randrange(1, 6)):
        record: Any = dict(sound)
        for _ in range(random.randrange(3)):
            record[random.choice([*record, "more"])] = random.choice(ODD)
        record = random.choice([record] * 5 + [[1, 2], "x", 5, None])
        line = json.dumps(record).encode()
        lines.append(random.choice([line] * 5 + [line[: len(line) // 2], b"\xff\xfe", b"[" * 5000, b"", b"NaN"]))
    files = {"artifacts/runs/r/results.jsonl": b"\n".join(lines) + random.choice([b"", b"\n"])}
    if random.random() < 0.3:
        files["artifacts/runs/r/judgements.jsonl"] = random.choice(lines)
    command = random.choice([
        ["results", "rebuild"], ["results", "add", "r"], ["results", "list"], ["results", "series"],
        ["results", "list", "--since", "x"],
        ["dashboard", "--out", "page.html"], ["results", "add", random.choice(["../r", "none", "", "r/../r"])],
        ["results", "rebuild", "--database", random.choice(["sqlite:////nope/x.db", "mysql://x", "x", "sqlite:///f"])],
    ])  # fmt: skip
    return Draw([*command], files)


def flipped_bit(random: random.Random) -> Draw:
    """A file of a sound store in which one bit is another, read by a command."""
    files, told = sound_files()
    rebuilt = [("results", "rebuild"), ("results", "add")]
    readers: dict[str, list[tuple[str, ...]]] = {
        "results.db": [LISTED, *rebuilt],
        "results.jsonl": [SHOWN, *rebuilt],
        "stages.jsonl": [SHOWN],
        "search.json": [SHOWN],
        "benchmark.json": [("check", "artifacts/runs/night1/benchmark.json")],
        "part-0.parquet": [("replay",)],
        "manifest.json": [("replay",)],
    }
    name = random.choice([name for name in files if Path(name).name in readers])
    arguments = random.choice(readers[Path(name).name])
    data = files[name]
    # the last end of a log's line is left: without it the line is torn, and counts as never written
    (data,) = flipped(data[:-1] if name.endswith("jsonl") else data, random.randrange(2**32), 1)
    data += b"\n" if name.endswith("jsonl") else b""
    return Draw(list(arguments), files | {name: data, "f.csv": b"t\n1\n2\n"}, told=told.get(arguments, ""))


def replay(work: Path) -> int:
    refused = replay_is_refused(work)
    if refused:
        print(f"streamgauge: {refused}", file=sys.stderr)
    return 2 if refused else 0
