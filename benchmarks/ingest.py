"""Compares ingest with the same work in Polars, for sources that are not plain text with numbers.

    .venv/bin/python -m benchmarks.ingest [--rows 2000000] [--repeats 5] [--only KIND] [--work DIR]

Both keep the line (of Parquet: the columns as a line) beside seq and event time, and write Parquet. The figures are
those of benchmarks/batch.py: medians and spread, contestants in turns.

- plain: `1,1700000000000,…`
- quotes: a field after the time is quoted and has a separator in it
- datetimes: `2023-11-14 22:13:20.000` instead of a number
- gzip: the plain file, compressed
- Parquet: the same columns; the time is a number
- JSON lines: the same columns as objects; Polars decodes the time from the line
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.contest import COLUMNS, Meter, make_source, polars, rows, take_turns
from streamgauge.base.units import Duration
from streamgauge.catalog.artifacts import ScratchStore
from streamgauge.config import Benchmark, DelaySpec, Experiment, Source, TimeColumn
from streamgauge.streams.stages import ingest
from streamgauge.streams.stages.workers import Forked

LINES = """
lines = pl.{scan}(src, has_header=False, separator="\\x01", quote_char=None, \
new_columns=["line"], schema={{"line": pl.String}}){lazy}
time = pl.col("line").str.splitn(",", 3).struct.field("field_1")
lines.with_row_index("seq").select(pl.col("seq").cast(pl.Int64), ({time}).alias("event_time"), "line").sink_parquet(
    out, compression="zstd", row_group_size=125_000)
"""
NUMBER = "time.cast(pl.Int64) * 1_000_000"
DATETIME = 'time.str.to_datetime("%Y-%m-%d %H:%M:%S%.3f", time_unit="ns").cast(pl.Int64)'
JSON = 'pl.col("line").str.json_decode(pl.Struct({{"column_1": pl.Int64}})).struct.field("column_1")'
POLARS = {
    "plain": LINES.format(scan="scan_csv", lazy="", time=NUMBER),
    "quotes": LINES.format(scan="scan_csv", lazy="", time=NUMBER),
    "datetimes": LINES.format(scan="scan_csv", lazy="", time=DATETIME),
    "gzip": LINES.format(scan="read_csv", lazy=".lazy()", time=NUMBER),
    "JSON lines": LINES.replace('pl.col("line").str.splitn(",", 3).struct.field("field_1")', JSON).format(
        scan="scan_csv", lazy="", time="time * 1_000_000"
    ),
    "Parquet": """
pl.scan_parquet(src).with_row_index("seq").select(
    pl.col("seq").cast(pl.Int64), (pl.col("column_1") * 1_000_000).alias("event_time"),
    pl.concat_str(pl.all().exclude("seq"), separator=",").alias("line"),
).sink_parquet(out, compression="zstd", row_group_size=125_000)
""",
}


def sources(work: Path, rows: int) -> dict[str, tuple[Path, dict[str, Any]]]:
    """File of each kind, made unless it is there, and the keys that describe it."""
    import polars as pl

    plain = work / f"rows-{rows}.csv"
    make_source(plain, rows)
    frame = pl.scan_csv(plain, has_header=False)
    files = {kind: work / f"{kind}-{rows}" for kind in ("quotes", "datetimes", "gzip", "Parquet", "JSON lines")}
    if not files["quotes"].exists():
        quoted = pl.concat_str(pl.lit('"'), "column_4", pl.lit(", "), "column_5", pl.lit('"'))
        frame.with_columns(column_4=quoted).sink_csv(files["quotes"], include_header=False, quote_style="never")
    if not files["datetimes"].exists():
        time = pl.from_epoch("column_1", time_unit="ms").dt.strftime("%Y-%m-%d %H:%M:%S%.3f")
        frame.with_columns(column_1=time).sink_csv(files["datetimes"], include_header=False)
    if not files["gzip"].exists():
        with open(plain, "rb") as source, gzip.open(files["gzip"], "wb", compresslevel=6) as packed:
            shutil.copyfileobj(source, packed, 1 << 20)
    if not files["Parquet"].exists():
        frame.sink_parquet(files["Parquet"], compression="zstd", row_group_size=125_000)
    if not files["JSON lines"].exists():
        frame.sink_ndjson(files["JSON lines"])
    return {
        "plain": (plain, {"quote": None}),
        "quotes": (files["quotes"], {}),
        "datetimes": (files["datetimes"], {"quote": None}),
        "gzip": (files["gzip"], {"quote": None}),
        "Parquet": (files["Parquet"], {"format": "parquet"}),
        "JSON lines": (files["JSON lines"], {"format": "jsonl"}),
    }


def benchmark_of(kind: str, file: Path, keys: dict[str, Any]) -> Benchmark:
    time = TimeColumn(column=1, unit="ms")
    if kind == "datetimes":
        time = TimeColumn(column=1, format="%Y-%m-%d %H:%M:%S.%f")
    elif kind in ("Parquet", "JSON lines"):
        time = TimeColumn(column="column_1", unit="ms")
    header = {} if kind in ("Parquet", "JSON lines") else {"header": False}
    source = Source(files=(str(file),), time=time, **header, **keys)
    experiment = Experiment(name="e", target_percent=20, delay=DelaySpec(max=Duration.parse("2s")))
    return Benchmark(name="b", source=source, experiments=(experiment,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="only kinds whose name contains this")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("artifacts/benchmark"))
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    os.environ["POLARS_MAX_THREADS"] = str(args.cores)
    meter, out = Meter(), args.work / "out.parquet"
    table = Table(*COLUMNS, title=f"ingest, {args.rows:,} rows, {args.cores} cores, median of {args.repeats}")
    for kind, (file, keys) in sources(args.work, args.rows).items():
        if args.only not in kind:
            continue
        benchmark, store = benchmark_of(kind, file, keys), ScratchStore(args.work / "store")

        def ours(benchmark: Benchmark = benchmark, store: ScratchStore = store) -> None:
            events = ingest.run(Forked(args.cores), benchmark, store)
            assert (events.manifest["events"], events.manifest["quarantined"]) == (args.rows, 0)

        def fresh(store: ScratchStore = store) -> None:
            shutil.rmtree(store.root, ignore_errors=True)
            store.root.mkdir(parents=True)

        theirs = polars(POLARS[kind], src=str(file), out=str(out))
        figures = take_turns(meter, {"streamgauge": ours, "polars": theirs}, fresh, 1, args.repeats)
        for row in rows(kind, figures):
            table.add_row(*row)
        table.add_section()
    shutil.rmtree(args.work / "store", ignore_errors=True)
    out.unlink(missing_ok=True)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
