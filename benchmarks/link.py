"""Measures what each link costs, beside Spark's own sources: CPU-µs per event and events/s, in one run.

    python -m benchmarks.link [--batch-rows 1000000] [--batches 10] [--rounds 2] [--only "JVM link, no-op"] [--socket]

Each case is a process of its own; CPU is that of the engine and its Python workers, not of whoever sends the rows. All
cases have the same columns, the same batch sizes and the pass-through query; warm-up batches are left out. The rate
source has the measuring sink of the JVM link. Flink has no batches: it is warmed up and measured for some seconds. Its
cases need `make flink`, those of the JVM link `make jvm-link`; cases that are not built are left out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from streamgauge.bench.driver.replay import wire_schema
from streamgauge.bench.driver.requests import Planned, Read, Request
from streamgauge.bench.driver.server import Answer, Server
from streamgauge.bench.driver.system import Endpoint
from streamgauge.bench.engines.processes import Session

COLUMNS = {"name": "string", "amount": "int64"}
SCHEMA = wire_schema(COLUMNS, line=True)
POOL_ROWS, POOL = 65_536, 4
# little, as the socket source keeps what it was sent in memory, and its cost grows with the square of what waits
SOCKET_ROWS_PER_S, SOCKET_CHUNK = 100_000, 5_000
RATE, PYTHON, JVM, FLINK, SOCKET = "rate source", "Python link", "JVM link", "Flink link", "socket source"
SINKS = ("no-op", "measuring sink")
SOCKET_CASE = f"{SOCKET}, {SINKS[0]}"
CASES = (*(f"{source}, {sink}" for source in (RATE, PYTHON, JVM, FLINK) for sink in SINKS), SOCKET_CASE)
#: options that the process of a case gets from ours
PASSED_ON = ("batch_rows", "batches", "warmup", "partitions", "cores", "seconds", "flink_warmup", "flink_seconds")
LINE = "x" * 48 + "\n"
DDL = "seq long, event_time long, event_ts long, ingestion_time long, offered_wall long, event_wall long, "
DDL += "sentinel boolean, line string, name string, amount long"


class Endless:
    """A driver with endless rows that cost it nothing; seq repeats."""

    schema = SCHEMA

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.pool = [batch(POOL_ROWS * number, POOL_ROWS) for number in range(POOL)]
        self.planned: dict[str, int] = {}

    def hello(self) -> Answer:
        return {"partitions": self.partitions, "attempt": "benchmark"}

    def refused(self, why: str) -> None:
        raise SystemExit(why)

    def answer(self, request: Request) -> Answer:
        if isinstance(request, Planned):
            self.planned |= request.offsets
        offered = {"rows": [2**60] * self.partitions, "finished": False, "wall_ns": time.time_ns()}
        return offered | {"planned": sum(self.planned.values())} if request.verb in ("latest", "status") else {}

    def read(self, request: Read) -> list[pa.RecordBatch]:
        row = request.start
        end = request.to if request.to is not None else row + (request.max_rows or 0)
        batches: list[pa.RecordBatch] = []
        while row < end and len(batches) < 16:
            offset = row % POOL_ROWS
            batches.append(self.pool[row // POOL_ROWS % POOL].slice(offset, end - row))
            row += batches[-1].num_rows
        return batches


def batch(first: int, rows: int) -> pa.RecordBatch:
    seq = np.arange(first, first + rows)
    walls = time.time_ns() + seq * 0
    values = {
        "event_ts": pa.array(seq * 1000).cast(SCHEMA.field("event_ts").type),
        "sentinel": pa.array(np.zeros(rows, bool)),
        "line": pa.array([LINE.encode()] * rows),
        "name": pa.array([f"k{n % 1000}" for n in seq]),
        "amount": pa.array(seq % 1000),
        "offered_wall": pa.array(walls),
        "event_wall": pa.array(walls),
    }
    return pa.RecordBatch.from_arrays([values.get(f.name, pa.array(seq)) for f in SCHEMA], schema=SCHEMA)


def serve(partitions: int, ports: Any) -> None:
    """Serves the link's driver, and a port that sends the same rows as text to whoever connects."""
    listener = socket.create_server(("127.0.0.1", 0))
    ports.send((Server(Endless(partitions), "127.0.0.1", 0).port, listener.getsockname()[1]))
    rows = pa.Table.from_batches([batch(0, SOCKET_CHUNK)])
    rows = rows.set_column(2, "event_ts", rows["event_ts"].cast(pa.int64()))
    rows = rows.set_column(7, "line", pa.array([LINE.strip()] * SOCKET_CHUNK))
    text = pa.BufferOutputStream()
    csv.write_csv(rows, text, csv.WriteOptions(include_header=False, quoting_style="none"))
    while True:
        connection, _ = listener.accept()
        try:
            while True:
                connection.sendall(text.getvalue())
                time.sleep(SOCKET_CHUNK / SOCKET_ROWS_PER_S)
        except OSError:
            pass
        connection.close()


def flink(name: str, args: argparse.Namespace) -> dict[str, float]:
    """Runs in its own process: a job for some seconds, once it is warm."""
    from streamgauge.bench.driver.client import Connection
    from streamgauge.bench.driver.system import TrialSetup
    from streamgauge.bench.engines.flink.cluster import Cluster
    from streamgauge.bench.engines.flink.flink_system import argument
    from streamgauge.bench.engines.flink.settings import FlinkSettings
    from streamgauge.bench.workloads import Spec
    from streamgauge.config import Workload

    endpoint = Endpoint("127.0.0.1", args.port, partitions=args.partitions)
    workload = Workload(name="w", query="passthrough", key="name", value="amount")
    with tempfile.TemporaryDirectory() as place, Connection(endpoint, "benchmark") as wire:
        setup = TrialSetup("benchmark", (endpoint,), workload, COLUMNS, "ns", Path(place), 1.0)
        cluster = Cluster(FlinkSettings(name="f", engine="flink", parallelism=args.cores), Path(place) / "cluster")
        try:
            given = argument(Spec.of(workload, COLUMNS), setup) | {"measured": name.endswith(SINKS[1])}
            cluster.run(given, args.cores)
            time.sleep(args.flink_warmup)
            seen = []
            for wait_s in (0, args.flink_seconds):
                time.sleep(wait_s)
                seen.append((time.monotonic(), cluster.session.cpu_seconds(), wire.status()["planned"]))
        finally:
            cluster.stop()
    took_s, cpu_s, rows = (b - a for a, b in zip(*seen, strict=True))
    return {
        "batches": 0, "events": rows, "cpu_us_per_event": cpu_s / max(1, rows) * 1e6, "events_per_s": rows / took_s,
    }  # fmt: skip


def case(name: str, args: argparse.Namespace) -> dict[str, float]:
    """Runs a query, in a process of its own, until it has done enough batches."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    from streamgauge.bench.engines.spark import queries
    from streamgauge.bench.engines.spark.application import LINKS
    from streamgauge.bench.engines.spark.connections import options_of, salts_of
    from streamgauge.bench.engines.spark.engine import TRANSPORT, checkpoint_manager
    from streamgauge.bench.engines.spark.progress import ran
    from streamgauge.bench.engines.spark.settings import JAR
    from streamgauge.bench.engines.spark.sink import MeasuringSink
    from streamgauge.bench.engines.spark.source import Link
    from streamgauge.bench.workloads import Spec

    builder = SparkSession.builder.master(f"local[{args.cores}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "2g").config("spark.sql.session.timeZone", "UTC")
    if JAR.exists():
        builder = builder.config("spark.jars", str(JAR))
    for key, value in [*TRANSPORT.items(), *(pair.split("=", 1) for pair in args.conf)]:
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.streaming.checkpointFileManagerClass", checkpoint_manager(spark))
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
    for source in (Link, MeasuringSink):
        spark.dataSource.register(source)
    options = options_of((Endpoint("127.0.0.1", args.port),), "benchmark")
    link, sink = LINKS["python" if name.startswith(PYTHON) else "jvm"]
    if name.startswith(RATE):
        rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", args.batch_rows)
        value = F.col("value")
        walls = [(F.lit(time.time_ns()) + value * 0).alias(name) for name in ("offered_wall", "event_wall")]
        frame = (
            rate.option("numPartitions", args.partitions)
            .load()
            .select(
                value.alias("seq"),
                value.alias("event_time"),
                F.timestamp_micros(value * 1000).alias("event_ts"),
                value.alias("ingestion_time"),
                *walls,
                F.lit(False).alias("sentinel"),
                F.lit(LINE).cast("binary").alias("line"),
                F.concat(F.lit("k"), (value % 1000).cast("string")).alias("name"),
                (value % 1000).alias("amount"),
            )
        )
    elif name.startswith(SOCKET):
        lines = spark.readStream.format("socket").options(host="127.0.0.1", port=args.text_port).load()
        frame = lines.select(F.from_csv("value", DDL).alias("row")).select("row.*")
        frame = frame.withColumn("event_ts", F.timestamp_micros("event_ts"))
    else:
        frame = spark.readStream.format(link).options(**options, batch_rows=args.batch_rows).load()
    frame = queries.run([frame], Spec("passthrough", "name", "amount"))
    options["salts"] = salts_of(frame.columns)
    sink = sink if name.endswith(SINKS[1]) else "noop"
    session = Session(os.getpid())
    with tempfile.TemporaryDirectory() as place:
        query = frame.writeStream.format(sink).options(**options).option("checkpointLocation", place).start()

        def wait(batches: int, longest_s: float = args.seconds) -> tuple[int, int, float]:
            """Waits for that many batches, or until time is over; returns batches done, rows, and CPU seconds."""
            deadline = time.monotonic() + longest_s
            while True:
                reports = [json.loads(progress.json) for progress in query.recentProgress]
                done, taken = sum(map(ran, reports)), sum(report["numInputRows"] for report in reports)
                if done >= batches or time.monotonic() > deadline or not query.isActive:
                    return done, taken, session.cpu_seconds()
                time.sleep(0.02)

        warmup, measured = (1, 1) if name.startswith(SOCKET) else (args.warmup, args.batches)
        before = wait(warmup)
        after = wait(before[0] + measured)
        reports = [json.loads(progress.json) for progress in query.recentProgress]
        query.stop()
    spark.stop()
    rows = after[1] - before[1]
    took_ms = [r["durationMs"]["triggerExecution"] for r in reports if ran(r)][before[0] : after[0]]
    return {
        "batches": after[0] - before[0],
        "events": rows,
        "cpu_us_per_event": (after[2] - before[2]) / rows * 1e6 if rows else float("nan"),
        "events_per_s": rows / max(1, sum(took_ms)) * 1000,
    }


def compare(args: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    """Measures the rounds of every case, in turns within a round, so that a drift of the machine meets all cases."""
    ports, child_end = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(args.partitions, child_end), daemon=True)
    server.start()
    try:
        port, text_port = ports.recv()
        figures: dict[str, list[dict[str, float]]] = {}
        names = [args.only] if args.only else [*possible() * args.rounds, *[SOCKET_CASE] * args.socket]
        for name in names:
            command = [sys.executable, __file__, "--case", name, "--port", str(port), "--text-port", str(text_port)]
            for key in PASSED_ON:
                command += [f"--{key.replace('_', '-')}", str(vars(args)[key])]
            for pair in args.conf:
                command += ["--conf", pair]
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(Path(__file__).parents[1])},
            )
            session = Session(process.pid)
            try:
                output, _ = process.communicate(timeout=4 * args.seconds + 60)
            finally:
                session.end()
            if process.returncode:
                raise SystemExit(f"{name}: the case failed with code {process.returncode}; run its command by hand")
            figures.setdefault(name, []).append(json.loads(output.splitlines()[-1]))
        return figures
    finally:
        server.terminate()
        server.join()


def possible() -> list[str]:
    """The cases whose engine is here, without the socket's, which is by far the slowest."""
    from streamgauge.bench.engines.flink.settings import HOME
    from streamgauge.bench.engines.flink.settings import JAR as FLINK_JAR
    from streamgauge.bench.engines.spark.settings import JAR

    built = {JVM: JAR.exists(), FLINK: (HOME / "pyflink" / "lib" / FLINK_JAR).exists(), SOCKET: False}
    measured_rate = f"{RATE}, {SINKS[1]}"
    return [
        name for name in CASES
        if all(there or not name.startswith(source) for source, there in built.items())
        and (built[JVM] or name != measured_rate)
    ]  # fmt: skip


def show(figures: dict[str, list[dict[str, float]]], batch_rows: int) -> None:
    print(
        f"{batch_rows:,} rows a batch, medians (least to most)\n"
        f"{'':28}{'CPU-µs/event':>22}{'events/s':>12}{'batches':>9}"
    )
    cpu: dict[str, float] = {}
    speed: dict[str, float] = {}
    for name, rounds in figures.items():
        costs = [figures["cpu_us_per_event"] for figures in rounds]
        cpu[name], speed[name] = median(costs), median(figures["events_per_s"] for figures in rounds)
        spread = f"{cpu[name]:.2f} ({min(costs):.2f} to {max(costs):.2f})"
        print(f"{name:28}{spread:>22}{speed[name]:12,.0f}{sum(figures['batches'] for figures in rounds):9.0f}")
    for source in (RATE, PYTHON, JVM, FLINK):
        if f"{source}, {SINKS[1]}" in cpu:
            plain, measured = (cpu[f"{source}, {sink}"] for sink in SINKS)
            ratio = plain / cpu[f"{RATE}, {SINKS[0]}"]
            print(f"{source}: {ratio:.2f} times the rate source's CPU; measuring: {measured - plain:.2f} CPU-µs/event")
    print(f"goals: {JVM} at most 1.2 times the rate source's CPU; measuring there at most 0.2 CPU-µs/event")
    if SOCKET_CASE in speed:
        print(f"{PYTHON} / {SOCKET}, rate: {speed[f'{PYTHON}, {SINKS[0]}'] / max(1e-9, speed[SOCKET_CASE]):.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="What the link costs, beside Spark's own sources")
    parser.add_argument("--batch-rows", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=10, help="measured, after the warm-up")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=15, help="batches, until the JVM has compiled what is hot")
    parser.add_argument("--flink-warmup", type=float, default=10.0, help="seconds")
    parser.add_argument("--flink-seconds", type=float, default=6.0, help="measured, after the warm-up")
    parser.add_argument("--socket", action="store_true", help="also Spark's socket source, once; a minute")
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120.0, help="the longest that warm-up or measuring takes")
    parser.add_argument("--conf", action="append", default=[], help="key=value for Spark, in every case")
    parser.add_argument("--only", choices=CASES, help="one case")
    parser.add_argument("--json", action="store_true")
    for name, kind in (("--case", str), ("--port", int), ("--text-port", int)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        print(json.dumps((flink if args.case.startswith(FLINK) else case)(args.case, args)))
        return
    figures = compare(args)
    if args.json or args.only:
        print(json.dumps(figures))
    else:
        show(figures, args.batch_rows)


if __name__ == "__main__":
    main()
