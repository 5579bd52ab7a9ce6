"""Compares ingest, analyze and generate with the same work in Polars and DuckDB, and with Spark copying rows unsorted.

    .venv/bin/python -m benchmarks.batch [--rows 5000000] [--repeats 5] [--fsync] [--only WORK] [--work DIR]

The figures are CPU seconds (user + system) and wall seconds of the whole process tree, and the peak memory of the
largest worker process: medians and spread of the repeats. Contestants take turns within every repeat, so that a drift
of the machine meets all of them. Ours run in copies of this process, as the one-shot commands do, or on Spark's warm
workers, as the stages do. The rows named "start" are whole commands, from the start of the process.

--fsync: what is written is also on the disk when the clock stops; otherwise it is in the page cache.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.contest import COLUMNS, Meter, command, make_source, polars, rows, take_turns, to_disk_after
from streamgauge.base.units import Duration
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.config import Benchmark, DelaySpec, Experiment, Source, TimeColumn
from streamgauge.records.manifests import StreamManifest

MAX_DELAY_MS = 2_000
TARGET = 20
SEED = 42


POLARS = {
    # keeps the line beside the time, as ingest does
    "ingest": """
lines = pl.scan_csv(src, has_header=False, separator="\\x01", quote_char=None, \
new_columns=["line"], schema={"line": pl.String})
lines.with_row_index("seq").select(
    pl.col("seq").cast(pl.Int64),
    (pl.col("line").str.splitn(",", 3).struct.field("field_1").cast(pl.Int64) * 1_000_000).alias("event_time"),
    "line",
).sink_parquet(out, compression="zstd", row_group_size=125_000)
""",
    "analyze": """
e = pl.scan_parquet(events).select("event_time")
late = e.with_columns(base=pl.col("event_time").cum_max()).select((pl.col("base") - pl.col("event_time")).alias("d"))
late.select(
    n=pl.len(), ooo=(pl.col("d") > 0).sum(),
    p50=pl.col("d").filter(pl.col("d") > 0).quantile(0.5, "nearest"),
    p90=pl.col("d").filter(pl.col("d") > 0).quantile(0.9, "nearest"),
    p99=pl.col("d").filter(pl.col("d") > 0).quantile(0.99, "nearest"),
    max=pl.col("d").max(),
).collect()
""",
    # delays a fifth of the events and sorts: misses the target on bursty or sparse data
    "naive": """
e = pl.read_parquet(events)
rng = np.random.default_rng(42)
g = e["event_time"].cum_max().to_numpy() + np.where(rng.random(len(e)) < 0.2, rng.integers(0, hi, len(e)), 0)
e = e.with_columns(pl.Series("ingestion_time", g)).sort("ingestion_time", "seq")
""",
    # the same, then only effective delays are kept, as many as wanted: exact on an ordered source
    "exact": """
e = pl.read_parquet(events)
rng = np.random.default_rng(42)
t = e["event_time"].to_numpy()
n = len(t); k = round(0.2 * n)
d = rng.integers(0, hi, n); u = rng.random(n)
def effective(p):
    g = t + np.where(u < p, d, 0)
    s = np.append(np.minimum.accumulate(g[::-1])[::-1], np.iinfo(np.int64).max)
    return (u < p) & (g > s[np.searchsorted(t, t, side="right")])
low, high = 0.0, 1.0
for _ in range(12):
    p = (low + high) / 2
    if effective(p).sum() >= k: high = p
    else: low = p
keep = np.flatnonzero(effective(high))
keep = keep[np.argsort(u[keep])][:k]
g = t.copy(); g[keep] += d[keep]
e = e.with_columns(pl.Series("ingestion_time", g)).sort("ingestion_time", "seq")
""",
}
#: the same work in DuckDB's SQL
DUCKDB = {
    "ingest": """
copy (select row_number() over () - 1 as seq, split_part(line, ',', 2)::bigint * 1000000 as event_time, line
from read_csv('{src}', columns={{'line': 'varchar'}}, header=false, delim='\x01', quote='', escape=''))
to '{out}' (format parquet, compression zstd)
""",
    "analyze": """
select count(*), count(*) filter (d > 0), quantile_disc(d, [0.5, 0.9, 0.99]) filter (d > 0), max(d) from (
select max(event_time) over (order by seq rows unbounded preceding) - event_time as d from read_parquet({events}))
""",
    "naive": """
copy (select event_time + case when random() < 0.2 then (random() * {hi})::bigint else 0 end as ingestion_time,
{columns} from read_parquet({events}) order by ingestion_time, seq) to '{out}' ({sink})
""",
}
SINKS = {
    "csv": 'e.select("ingestion_time", "event_time", pl.col("line").cast(pl.String))'
    '.write_csv(out, include_header=False, quote_style="never")',
    "parquet": 'e.select("ingestion_time", "seq", "event_time", "line")'
    '.write_parquet(out, compression="zstd", row_group_size=125_000)',
}


def duckdb(name: str, cores: int, **values: object) -> Callable[[], None]:
    """Returns a function that does the work in a process of its own; its start, 0.1 s, is counted."""
    settings = f"set threads={cores}; set enable_progress_bar=false"
    code = f"import duckdb; c = duckdb.connect(); c.execute({settings!r}); c.execute(open(0).read())"

    def work() -> None:
        subprocess.run([sys.executable, "-c", code], input=DUCKDB[name].format(**values), text=True, check=True)

    return work


#: reads a file of events and counts those out of order: what somebody writes who has one question
COUNT = """
import sys, polars as pl
path, column, unit = sys.argv[1:]
time = pl.col(column).str.to_datetime("%Y-%m-%d %H:%M:%S") if unit == "text" else pl.col(column)
e = pl.scan_csv(path, has_header=unit == "text").select(t=time)
print(e.select(n=pl.len(), late=(pl.col("t") < pl.col("t").cum_max()).sum()).collect())
"""
FLIGHTS = "configs/data/flights_2013_01.csv.gz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--fsync", action="store_true", help="count the time until the disk has it")
    parser.add_argument("--only", default="", help="only works whose name contains this")
    parser.add_argument("--warmups", type=int, default=1, help="rounds before those that count")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("artifacts/benchmark"))
    args = parser.parse_args()
    work = args.work
    work.mkdir(parents=True, exist_ok=True)
    source_file = work / f"rows-{args.rows}.csv"
    make_source(source_file, args.rows)

    os.environ["POLARS_MAX_THREADS"] = str(args.cores)
    cold = time.perf_counter()
    meter = Meter()
    cold_cpu = meter.cpu()
    from streamgauge.streams.stages import analyze, generate, ingest
    from streamgauge.streams.stages.session import batch_session
    from streamgauge.streams.stages.tasks import OnSpark
    from streamgauge.streams.stages.workers import Forked

    spark = batch_session("benchmark", f"local[{args.cores}]", {"spark.driver.memory": "2g"})
    workers = OnSpark(spark)
    spark.range(10).rdd.map(lambda x: x).count()
    print(
        f"cold start: {time.perf_counter() - cold:.1f} s wall, {meter.cpu() - cold_cpu:.1f} s CPU (not counted below)"
    )

    source = Source(files=(str(source_file),), header=False, quote=None, time=TimeColumn(column=1, unit="ms"))
    experiment = Experiment(name="e", target_percent=TARGET, delay=DelaySpec(max=Duration.parse(f"{MAX_DELAY_MS}ms")))
    benchmark = Benchmark(name="b", source=source, experiments=(experiment,))
    store = Store(work / "store")
    shutil.rmtree(store.root, ignore_errors=True)
    store.source_fingerprint(source.files)  # hashing the source is apart: it is done once for all runs
    events = ingest.run(workers, benchmark, store)
    disordered_file = work / f"disordered-{args.rows}.csv"
    make_source(disordered_file, args.rows, late=0.05)
    disordered = ingest.run(
        workers,
        benchmark.model_copy(update={"source": source.model_copy(update={"files": (str(disordered_file),)})}),
        store,
    )
    scratch = work / "out"

    def fresh() -> None:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()

    def ours_ingest() -> None:
        shutil.rmtree(events.path)
        again = partial(ingest.run, workers, benchmark, store)
        to_disk_after(again, events.path) if args.fsync else again()

    def ours_generate(kind: str) -> Callable[[], None]:
        return lambda: check(generate.write_stream(workers, events, source, experiment, scratch, outputs={kind}))

    def in_copies(kind: str, events: Artifact = events) -> Callable[[], None]:
        copies = Forked(args.cores)
        return lambda: check(generate.write_stream(copies, events, source, experiment, scratch, outputs={kind}))

    def check(manifest: StreamManifest) -> None:
        assert manifest.achieved_out_of_order == round(TARGET * args.rows / 100)

    def spark_copy(kind: str) -> Callable[[], None]:
        def copy() -> None:
            frame = spark.read.parquet(*[str(f) for f in events.files()])
            if kind == "csv":
                frame.selectExpr("concat_ws(',', event_time, decode(line, 'UTF-8')) as value").write.mode(
                    "overwrite"
                ).text(str(scratch / "copy"))
            else:
                frame.write.mode("overwrite").option("compression", "zstd").parquet(str(scratch / "copy"))

        return copy

    names, late_names = ([str(f) for f in artifact.files()] for artifact in (events, disordered))
    hi = MAX_DELAY_MS * 10**6
    out, cores = str(scratch / "p"), args.cores
    program = str(Path(sys.executable).with_name("streamgauge"))
    text = {"columns": "event_time, decode(line)", "sink": "format csv, header false, quote ''"}
    columns = {"columns": "seq, event_time, line", "sink": "format parquet, compression zstd"}
    contestants: dict[str, dict[str, Callable[[], Any]]] = {
        "ingest → Parquet": {
            "streamgauge": ours_ingest,
            "polars": polars(POLARS["ingest"], src=str(source_file), out=out),
            "duckdb": duckdb("ingest", cores, src=source_file, out=out),
        },
        "analyze events": {
            "streamgauge": lambda: analyze.measure(workers, events),
            "polars": polars(POLARS["analyze"], events=names),
            "duckdb": duckdb("analyze", cores, events=names),
        },
        "generate → CSV, one file": {
            "streamgauge exact": in_copies("csv"),
            "the same, on Spark": ours_generate("csv"),
            "polars naive": polars(POLARS["naive"] + SINKS["csv"], events=names, hi=hi, out=out),
            "polars exact": polars(POLARS["exact"] + SINKS["csv"], events=names, hi=hi, out=out),
            "duckdb naive": duckdb("naive", cores, events=names, hi=hi, out=out, **text),
            "spark copy": spark_copy("csv"),
        },
        "generate → CSV, source with 5 % late": {
            "streamgauge exact": in_copies("csv", disordered),
            "polars naive": polars(POLARS["naive"] + SINKS["csv"], events=late_names, hi=hi, out=out),
        },
        "generate → Parquet": {
            "streamgauge exact": in_copies("parquet"),
            "the same, on Spark": ours_generate("parquet"),
            "polars naive": polars(POLARS["naive"] + SINKS["parquet"], events=names, hi=hi, out=out),
            "duckdb naive": duckdb("naive", cores, events=names, hi=hi, out=out, **columns),
            "spark copy": spark_copy("parquet"),
        },
        "start: analyze 26,483 flights": {
            "streamgauge": command(program, "analyze", FLIGHTS, "--time", "sched", "--format", "%Y-%m-%d %H:%M:%S"),
            "polars counts": command(sys.executable, "-c", COUNT, FLIGHTS, "sched", "text"),
        },
        "start: analyze the source": {
            "streamgauge": command(program, "analyze", str(source_file), "--no-header", "--time", "1", "--unit", "ms"),
            "polars counts": command(sys.executable, "-c", COUNT, str(source_file), "column_1", "ms"),
        },
    }
    contestants = {title: sides for title, sides in contestants.items() if args.only in title}
    on = ", to the disk" * args.fsync
    table = Table(*COLUMNS, title=f"{args.rows:,} rows, {args.cores} cores, median of {args.repeats}{on}")
    for title, sides in contestants.items():
        figures = take_turns(meter, sides, fresh, args.warmups, args.repeats, scratch if args.fsync else None)
        for row in rows(title, figures):
            table.add_row(*row)
        table.add_section()
    spark.stop()
    for left in (store.root, scratch):
        shutil.rmtree(left, ignore_errors=True)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
