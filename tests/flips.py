"""Flips bits of files, as a disk or a memory may do."""

from __future__ import annotations

import random
import tempfile
from dataclasses import asdict
from functools import cache
from pathlib import Path

FLIPS = 150


def flipped(data: bytes, seed: int, flips: int = FLIPS) -> list[bytes]:
    """Returns copies of the data, each with another bit flipped."""
    bits = random.Random(seed).sample(range(8 * len(data)), min(flips, 8 * len(data)))
    copies = []
    for bit in bits:
        copy = bytearray(data)
        copy[bit // 8] ^= 1 << bit % 8
        copies.append(bytes(copy))
    return copies


#: the commands that sound_files tells the output of
LISTED: tuple[str, ...] = ("results", "list", "--json")
SHOWN: tuple[str, ...] = ("runs", "show", "night1", "--json")


@cache
def sound_files() -> tuple[dict[str, bytes], dict[tuple[str, ...], str]]:
    """Returns the files of a small store, by name, and what these commands print of it."""
    import yaml

    from streamgauge import config
    from streamgauge.base.jsonl import write_record
    from streamgauge.catalog.artifacts import Store
    from streamgauge.catalog.run_log import RunLog
    from streamgauge.results.index.result_index import rebuilt
    from tests.catalog.test_flipped_artifacts import make
    from tests.catalog.test_flipped_records import BENCHMARK
    from tests.command import Call, run
    from tests.example_search import LOSS
    from tests.index.example import three_runs

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "artifacts"
        runs = three_runs(root)
        index, _ = rebuilt(f"sqlite:///{root / 'results.db'}", runs)
        index.engine.dispose()
        with RunLog(runs[0]).stage("search", {"experiment": "e"}):
            pass
        (cell := runs[0] / "cells" / "e.w.s").mkdir(parents=True)
        write_record(cell / "search.json", {"version": 1, "outcome": "found", "lost_at_own_speed": asdict(LOSS)})
        told = {one: run(Call([*one, "--artifacts", str(root)])).out for one in (LISTED, SHOWN)}
        benchmark = config.parse(config.Benchmark, yaml.safe_load(yaml.safe_dump(BENCHMARK)), "test")
        write_record(runs[0] / "benchmark.json", benchmark.model_dump(mode="json"))
        Store(root).made("stream", "k", make)
        files = (file for file in root.rglob("*") if file.is_file() and file.suffix != ".lock")
        return {str(file.relative_to(folder)): file.read_bytes() for file in files}, told


def replay_is_refused(work: Path) -> str | None:
    """The line that refuses the stream of sound_files in a folder; None if it is what was written."""
    from streamgauge.base.errors import UserError
    from streamgauge.catalog.artifacts import Store
    from tests.catalog.test_flipped_artifacts import rows_of, table

    try:
        rows = rows_of(Store(work / "artifacts"))
    except UserError as problem:
        return str(problem)
    if not rows.select(table().schema.names).equals(table()):
        raise AssertionError("other rows than those that were written")
    return None
