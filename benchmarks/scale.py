"""Measures how work and memory grow with the rows, what hostile streams take, and what a second worker brings.

    .venv/bin/python -m benchmarks.scale [--rows 5000000 50000000] [--work DIR] [--events | --shapes | --cluster]

- By default: CPU seconds per million rows, and peak memory of the largest process, of ingest, analyze and exact
  generation to Parquet, in two processes. Both should not depend on the number of rows.
- `--events`: the same without ingest, for more rows than the disk holds as text.
- `--shapes`: generation from streams that are hard on it, of the first number of rows.
- `--cluster`: wall seconds of the same work on a standalone cluster with one worker of one core, then with two.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.contest import make_source
from streamgauge.base.schemas import FILE_ROWS, events_schema
from streamgauge.catalog.artifacts import Artifact, ScratchStore
from streamgauge.config import Benchmark, Experiment, Source, TimeColumn
from streamgauge.records.manifests import EventsManifest
from streamgauge.records.profile import InFile
from streamgauge.streams.stages import analyze, event_parts, generate, ingest
from streamgauge.streams.stages.workers import Forked, Workers

T = TypeVar("T")
MILLION, MS = 1_000_000, 1_000_000
BEGIN = 1_700_000_000_000 * MS


def experiment(delay: dict[str, str], target: int = 20) -> Experiment:
    asked = {"name": "e", "target_percent": target, "delay": delay, "seed": 42, "on_infeasible": "closest"}
    return Experiment.model_validate(asked)


def benchmark_of(file: Path) -> Benchmark:
    source = Source(files=(str(file),), header=False, quote=None, time=TimeColumn(column=1, unit="ms"))
    return Benchmark(name="b", source=source, experiments=(experiment({"max": "2s"}),))


@contextmanager
def folder(path: Path) -> Iterator[Path]:
    """Yields an empty folder, and removes it."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def steps(workers: Workers, rows: int, work: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yields name and function of each work; each needs what the one before has made."""
    file = work / f"rows-{rows}.csv"
    measured(lambda: make_source(file, rows))
    benchmark, store = benchmark_of(file), ScratchStore(work / "store")
    with folder(store.root), folder(work / "stream") as out:
        yield "ingest → Parquet", lambda: ingest.run(workers, benchmark, store)
        events = ingest.run(workers, benchmark, store)
        yield "analyze events", lambda: analyze.measure(workers, events)
        yield (
            "generate → Parquet",
            lambda: generate.write_stream(
                workers, events, benchmark.source, benchmark.experiments[0], out, outputs={"parquet"}
            ),
        )


def steps_after_ingest(workers: Workers, rows: int, work: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yields the same from events that are made here: a source of half a billion lines would need 50 GB."""
    with folder(work / f"events-{rows}") as place, folder(work / "stream") as out:
        events, asked = written(range(rows), place), experiment({"max": "2s"})
        source = Source(files=("none",), header=False, time=TimeColumn(column=1, unit="ms"))
        yield "analyze events", lambda: analyze.measure(workers, events)
        yield (
            "generate → Parquet",
            lambda: generate.write_stream(workers, events, source, asked, out, outputs={"parquet"}),
        )


def measured(work: Callable[[], T]) -> tuple[float, float, float, T]:
    """Returns CPU seconds, wall seconds, the largest process's peak in MiB, and the result of work.

    The work runs in a copy of this process, so that no memory of earlier work counts.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run() -> None:
        begin = time.perf_counter()
        result = work()
        wall = time.perf_counter() - begin
        peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        sender.send((sum(os.times()[:4]), wall, peak / 1024, result))

    copy = context.Process(target=run)
    copy.start()
    sender.close()
    try:
        outcome: tuple[float, float, float, T] = receiver.recv()
    finally:
        copy.join()
    return outcome


def growth(sizes: list[int], work: Path, steps: Callable[..., Iterator[tuple[str, Callable[[], Any]]]]) -> Table:
    table = Table(
        "work", "rows", "CPU s per million rows", "wall s", "peak MiB of a process", title="growth, 2 processes"
    )
    for rows in sizes:
        for name, step in steps(Forked(2), rows, work):
            cpu, wall, peak, _ = measured(step)
            table.add_row(name, f"{rows:,}", f"{cpu / rows * MILLION:.3f}", f"{wall:.1f}", f"{peak:.0f}")
        table.add_section()
    return table


#: how the times of n events are made, the delay, and the target in percent; `length` is that of the ordered stream
SHAPES: dict[str, tuple[Callable[[int], Any], dict[str, str], int]] = {
    "a millisecond apart, delays to 2 s": (lambda n: np.arange(n), {"max": "2s"}, 20),
    "delays longer than a chunk, 10 min": (lambda n: np.arange(n), {"max": "10min"}, 20),
    "delays as long as the stream": (lambda n: np.arange(n), {"max": "{length}ms"}, 20),
    "one event ten years ahead": (
        lambda n: np.where(np.arange(n) == n // 2, 315_360_000_000, np.arange(n)),
        {"max": "2s"},
        20,
    ),
    "all events at one time": (np.zeros, {"max": "2s"}, 20),
    "half of them at one time, delayed to one time": (
        lambda n: np.maximum(np.arange(n) - n // 2, 0),
        {"min": "2s", "max": "2s"},
        50,
    ),
}


def lines_of(start: int, count: int) -> pa.Array:
    """Lines of 100 bytes: the number of each with 12 digits, 20 random letters, and the same text in all."""
    data = np.full((count, 100), ord("x"), np.uint8)
    data[:, :12] = np.arange(start, start + count)[:, None] // 10 ** np.arange(11, -1, -1) % 10 + 48
    data[:, 12:32] = np.random.default_rng(start).integers(97, 123, (count, 20), np.uint8)
    data[:, 99] = 10
    offsets = np.arange(count + 1, dtype=np.int32) * 100
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data.tobytes())])


def written(times: Any, place: Path) -> Artifact:
    """Writes events with these times (ms) and lines of 100 bytes."""
    schema = events_schema({}, arrival=False)

    def write(start: int) -> str:
        part = np.asarray(times[start : start + FILE_ROWS], np.int64) * MS + BEGIN
        columns = [pa.array(np.arange(start, start + len(part))), pa.array(part), lines_of(start, len(part))]
        table = pa.Table.from_arrays(columns, schema=schema)
        return event_parts.write_rows(table, place / f"part-{start:012d}.parquet")

    files = Forked(2).each(range(0, len(times), FILE_ROWS), write)
    count = len(times)
    manifest = EventsManifest(
        files=tuple(files), quarantine_file="", events=count, quarantined=0, lines=count, source_lines=count, tick="ns",
        ticks_per_second=10**9, columns={}, arrival=False, order="file", in_file=InFile(events=count, out_of_order=0),
        split_bytes=0,
    )  # fmt: skip
    return Artifact("events", "shape", place, manifest.to_json())


def shapes(rows: int, work: Path) -> Table:
    table = Table(
        "stream", "late events", "CPU s per million rows", "wall s", "peak MiB of a process",
        title=f"generation from {rows:,} events, 2 processes",
    )  # fmt: skip
    source = Source(files=("none",), header=False, time=TimeColumn(column=1, unit="ms"))
    for number, (name, (times, delay, target)) in enumerate(SHAPES.items()):
        # footers are remembered by the file's name
        with folder(work / f"events-{number}") as place, folder(work / "stream") as out:
            wanted = experiment({key: text.format(length=rows) for key, text in delay.items()}, target)
            make = partial(generate.write_stream, Forked(2), written(times(rows), place), source, wanted, out)
            cpu, wall, peak, made = measured(partial(make, outputs={"parquet"}))
            late = f"{100 * made.achieved_out_of_order / rows:.1f} %"
            table.add_row(name, late, f"{cpu / rows * MILLION:.3f}", f"{wall:.1f}", f"{peak:.0f}")
    return table


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    """Yields the URL of a standalone cluster on this host whose workers have one core each."""
    import pyspark

    home = Path(pyspark.__file__).parent
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url, java = f"spark://127.0.0.1:{port}", str(home / "bin" / "spark-class")
    environment = os.environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    commands = [["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]]
    commands += [["org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "2g", "--work-dir",
                  f"/tmp/scale-worker-{number}", url] for number in range(workers)]  # fmt: skip
    running: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            command += [] if running else ["--webui-port", "0"]
            running.append(subprocess.Popen([java, *command], env=environment, stdout=-3, stderr=-3))
            time.sleep(5)
        yield url
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()
        for number in range(workers):
            shutil.rmtree(f"/tmp/scale-worker-{number}", ignore_errors=True)


def on_clusters(rows: int, work: Path) -> Table:
    from streamgauge.streams.stages import session
    from streamgauge.streams.stages.tasks import OnSpark

    table = Table("work", "1 worker, wall s", "2 workers, wall s", "ratio", title=f"standalone cluster, {rows:,} rows")
    walls: dict[str, list[float]] = {}
    for count in (1, 2):
        with cluster(count) as url:
            spark = session.batch_session("scale", url, {"spark.cores.max": str(count), "spark.executor.memory": "1g"})
            try:
                spark.range(10).rdd.map(lambda one: one).count()
                for name, step in steps(OnSpark(spark), rows, work):
                    begin = time.perf_counter()
                    step()
                    walls.setdefault(name, []).append(time.perf_counter() - begin)
            finally:
                session.end(spark)
                spark.sparkContext._gateway.shutdown()
                type(spark.sparkContext)._gateway = type(spark.sparkContext)._jvm = None
    for name, (one, two) in walls.items():
        table.add_row(name, f"{one:.1f}", f"{two:.1f}", f"{one / two:.2f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[5 * MILLION, 50 * MILLION])
    parser.add_argument("--work", type=Path, default=Path("artifacts/scale"))
    parser.add_argument("--events", action="store_true", help="without ingest: from events that are made here")
    parser.add_argument("--shapes", action="store_true")
    parser.add_argument("--cluster", action="store_true")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    if args.shapes:
        table = shapes(args.rows[0], args.work)
    elif args.cluster:
        table = on_clusters(args.rows[0], args.work.resolve())
    else:
        table = growth(args.rows, args.work, steps_after_ingest if args.events else steps)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
