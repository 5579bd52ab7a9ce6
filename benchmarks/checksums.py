"""Measures what checksums cost: CPU seconds of writing, reading and hashing a stream, with page checksums and without.

    .venv/bin/python -m benchmarks.checksums [--rows 5000000] [--repetitions 5]

Each figure is the median of the repetitions, which alternate; the spread is from the least to the largest.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from streamgauge.base.schemas import ENCODINGS, ROW_GROUP_ROWS, STREAM
from streamgauge.catalog.manifests import digests

MS = 1_000_000


def stream(rows: int) -> pa.Table:
    """A stream of one event a millisecond, a fifth of them late, with lines of about 22 bytes."""
    draw = np.random.default_rng(1)
    arrival = np.arange(rows, dtype=np.int64) * MS
    event = arrival - np.where(draw.random(rows) < 0.2, draw.integers(0, 2000, rows) * MS, 0)
    lines = [
        b"%d,%d\n" % pair for pair in zip((event // MS).tolist(), draw.integers(0, 10**9, rows).tolist(), strict=True)
    ]
    return pa.Table.from_arrays(
        [pa.array(arrival), pa.array(np.arange(rows)), pa.array(event), pa.array(lines, pa.binary())], schema=STREAM
    )


def write(table: pa.Table, file: Path, checksums: bool) -> None:
    """Writes as the stage generate does."""
    with pq.ParquetWriter(
        file,
        table.schema,
        compression="zstd",
        column_encoding=ENCODINGS,
        use_dictionary=[name for name in table.schema.names if name not in ENCODINGS],
        write_statistics=["ingestion_time", "seq", "event_time"],
        write_page_checksum=checksums,
    ) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)


def read(file: Path, checksums: bool) -> None:
    with pq.ParquetFile(file, memory_map=False, page_checksum_verification=checksums) as opened:
        for group in range(opened.num_row_groups):
            opened.read_row_group(group, use_threads=False)


def cpu_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repetitions", type=int, default=5)
    given = parser.parse_args()
    table = stream(given.rows)
    with tempfile.TemporaryDirectory(prefix="streamgauge-checksums-") as folder:
        plain, summed = Path(folder) / "plain" / "part", Path(folder) / "summed" / "part"
        steps: dict[str, Callable[[], object]] = {
            "write, without": lambda: write(table, plain, False),
            "write, with page checksums": lambda: write(table, summed, True),
            "read, unverified": lambda: read(summed, False),
            "read, verified": lambda: read(summed, True),
            "SHA-256 of the file": lambda: digests(summed.parent),
        }
        for file in (plain, summed):
            file.parent.mkdir()
        taken: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(given.repetitions):
            for name, work in steps.items():
                taken[name].append(cpu_seconds(work))
        size = f"{plain.stat().st_size / 1e6:.1f} MB without, {summed.stat().st_size / 1e6:.1f} MB with"
    shown = Table("step", "CPU s", "spread", title=f"{given.rows:,} rows; {size}")
    for name, seconds in taken.items():
        shown.add_row(name, f"{statistics.median(seconds):.2f}", f"{min(seconds):.2f} to {max(seconds):.2f}")
    Console().print(shown)


if __name__ == "__main__":
    main()
