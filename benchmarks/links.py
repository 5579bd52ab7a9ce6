"""Compares three links between generator and system: direct, queues embedded in the generator, a Kafka broker between.

    .venv/bin/python -m benchmarks.links [--engines spark flink] [--seconds 10] [--stall 5] [--out FILE] [--markdown]

Every link carries the same stream to the same query (flights per carrier and hour, a fifth of the events late). The
command searches the sustainable rate of each. Then it runs one trial at a rate below the smallest of an engine's three:
latency and CPU for --seconds; the system is stopped for --stall seconds (SIGSTOP); then it goes on. The direct link is
in direct.py, the jobs that read it or Kafka in link_jobs/. Needs `make kafka jvm-link flink`. Takes about 15 minutes on
two cores; with one engine, half. --out adds the figures to a file, --print prints the table of that file.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.kept import Kept
from streamgauge import config
from streamgauge.app.cli.measurements import prepared
from streamgauge.app.services.broker import Broker
from streamgauge.app.services.java_server import HOME as KAFKA
from streamgauge.bench.driver.client import Connection, WireError
from streamgauge.bench.measure.cell import ReadyCell, ready
from streamgauge.bench.measure.lock import measuring
from streamgauge.bench.measure.searcher import Searcher
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, Cell
from streamgauge.records.trial import WINDOWS, MeasuredWindow

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[1]
FLINK = ROOT / ".venvs" / "flink" / "pyflink" / "lib"
JOBS = ROOT / "benchmarks" / "link_jobs"
LINKS = ("direct", "embedded", "kafka")
ENGINES = ("spark", "flink")
#: part of the smallest sustainable rate of an engine's links: the rate at which all are tried
SHARE = 0.6
#: the first seconds of a trial, in which a system warms up: a job is new, and the direct link has no rows to warm it
SETTLE_S = 30.0
#: seconds after the stall, for the system to catch up
AFTER_S = 10.0
CAUGHT_UP_S = 1.0
#: parts by a word of their command line; what is none of them belongs to the system
PARTS = {
    "streamgauge.bench.driver": "driver",
    "streamgauge.bench.publish.publisher": "publisher",
    "benchmarks.direct": "publisher",
}
CPU_OF = ("driver", "publisher", "broker", "system")
_ANSWER = {
    "key": ["hour", "carrier"],
    "lateness": "2h",
    "sql": "select time_bucket(interval 1 hour, event_ts) as hour, carrier, count(*) as flights, "
    "sum(flight)::bigint as total, max(event_wall) as event_wall, max(offered_wall) as offered_wall "
    "from events group by all",
}


def benchmark(bootstrap: str, classes: Path) -> Benchmark:
    """The benchmark of all cells, without a file; classes: the folder of Flink's job."""
    systems = [system(engine, link, bootstrap, classes) for engine in ENGINES for link in LINKS]
    bench = {
        "name": "links",
        "source": {
            "files": str(ROOT / "configs" / "data" / "flights_2013_01.csv.gz"),
            "time": {"column": "sched", "format": "%Y-%m-%d %H:%M:%S"},
            "order": "event_time",
            "columns": {"carrier": "string", "flight": "int64"},
        },
        "experiments": [{"name": "late20", "target_percent": 20, "delay": {"max": "2h"}, "seed": 42}],
        "workloads": [
            {"name": "hourly", "query": "windowed_aggregation", "key": "carrier", "value": "flight", "window": "1h",
             "watermark": "2h"}
        ],
        "systems": systems,
        "replay": {"queue_seconds": 20, "densify": 16, "max_slip": "300ms"},
        "search": {"max_age": "5s", "warmup_seconds": 12, "window_seconds": 2.5, "processes": 1, "proof_steps": 0},
    }  # fmt: skip
    return config.parse(Benchmark, bench, "links")


def compiled(place: Path) -> Path:
    """Compiles Flink's job: its functions must be classes that Flink finds again. Returns the folder."""
    command = ["javac", "-cp", f"{FLINK}/*", "-d", str(place), str(JOBS / "LinkJob.java")]
    subprocess.run(command, check=True)
    return place


def system(engine: str, link: str, bootstrap: str, classes: Path) -> Json:
    """An engine behind a link, as the keys of a benchmark file."""
    name = f"{engine}-{link}"
    if link == "embedded":
        own = {"link": "jvm", "batch_rows": 100_000} if engine == "spark" else {}
        return {"name": name, "engine": engine, **own}
    source = "kafka" if link == "kafka" else "socket"
    job: Json = {
        "name": name, "bootstrap": bootstrap, "warm": "6s", "headers": False, "answer": _ANSWER, "directory": str(ROOT),
        "engine": "job" if link == "kafka" else "benchmarks.direct:DirectSystem",
    }  # fmt: skip
    if engine == "spark":
        job["command"] = [
            str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]", "--driver-memory", "2g",
            "--driver-class-path", f"{KAFKA / 'spark'}/*", "--conf", "spark.sql.shuffle.partitions=1",
            "--conf", "spark.sql.session.timeZone=UTC", "--conf", "spark.ui.enabled=false",
            str(JOBS / "spark_job.py"), "--source", source, "--bootstrap", "{bootstrap}", "--input", "{input}",
            "--output", "{output}", "--checkpoint", "{work}/checkpoint",
        ]  # fmt: skip
        job["environment"] = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        return job | {"progress": {"checkpoint": "{work}/checkpoint"}}
    packages = ("lang", "util", "time", "nio")
    job["command"] = [
        "java", "-Xmx1g", *(f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in packages),
        "-cp", f"{classes}:{FLINK}/*:{KAFKA / 'flink'}/*", "LinkJob",
        source, "{bootstrap}", "{input}", "{output}", "{group}",
    ]  # fmt: skip
    # it gives Kafka no sign before its first checkpoint; its connection to a socket is one
    return job | ({"ready": {"seconds": 8}} if link == "kafka" else {})


def search(bench: ReadyCell, token: int) -> Json:
    """Searches the sustainable rate; the ceiling is the rate of the ladder's best window."""
    with tempfile.TemporaryDirectory() as place:
        searched = Searcher(bench, bench.plan.search, token, Path(place)).run()
        windows = [line.window for line in MeasuredWindow.read_log(Path(place) / WINDOWS)]
    rates = [w.rows / w.seconds for w in windows if w.purpose == "ladder" and w.invalid is None and w.batches]
    return {
        "ceiling": max(rates, default=None), "rate": searched.sustainable_rate_events_per_s,
        "interval": searched.interval, "outcome": searched.outcome, "reason": searched.reason,
    }  # fmt: skip


class Watch:
    """Looks at a trial from outside: CPU of each part while it is steady, then a stall of the system."""

    def __init__(self, bench: ReadyCell, broker: int, steady_s: float, stall_s: float) -> None:
        self._bench, self._broker, self._steady_s, self._stall_s = bench, broker, steady_s, stall_s
        self.cpu_s: dict[str, float] = {}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        if (start_ns := self._start_ns()) is None:
            return
        self._sleep_until(start_ns, SETTLE_S)
        before = self._cpu()
        self._sleep_until(start_ns, SETTLE_S + self._steady_s)
        after = self._cpu()
        self.cpu_s = {part: after[part] - before.get(part, 0.0) for part in after}
        stopped = [process for part, process in self._processes() if part == "system"]
        for process in stopped:
            process.suspend()
        self.over.wait(self._stall_s)
        for process in stopped:
            process.resume()

    def _start_ns(self) -> int | None:
        """Instant at which the open-loop trial starts; None if it never does."""
        (endpoint,) = self._bench.fleet.endpoints
        while not self.over.wait(0.1):
            try:
                with Connection(endpoint) as wire:
                    status = wire.status()
            except WireError:  # no trial yet
                continue
            if status["state"] == "started" and not status["hold"]:
                return int(status["start_wall_ns"])
        return None

    def _sleep_until(self, start_ns: int, at_s: float) -> None:
        self.over.wait(max(0.0, start_ns / 1e9 + at_s - time.time()))

    def _processes(self) -> list[tuple[str, psutil.Process]]:
        parts = []
        for process in psutil.Process().children(recursive=True):
            try:
                words = process.cmdline()
            except psutil.Error:
                continue
            part = next((part for word, part in PARTS.items() if word in words), "system")
            parts.append(("broker" if process.pid == self._broker else part, process))
        return parts

    def _cpu(self) -> dict[str, float]:
        total: dict[str, float] = {}
        for part, process in self._processes():
            times = process.cpu_times()
            total[part] = total.get(part, 0.0) + times.user + times.system
        return total


def trial(bench: ReadyCell, rate: float, token: int, broker: int, args: argparse.Namespace) -> Json:
    """Runs the trial with the stall; returns latencies and CPU before the stall, and its effects."""
    stall_at = SETTLE_S + args.seconds
    watch = Watch(bench, broker, args.seconds, args.stall)
    try:
        measured = bench.trial(rate, stall_at + args.stall + AFTER_S, token=token)
    finally:
        watch.over.set()
        watch.thread.join()
    details = measured.details
    system: Json = dict(details.get("system", {}))
    check = system.get("check") or measured.check or {}
    epochs: list[Json] = [dict(epoch) for epoch in details["epochs"]]
    steady = [e for e in epochs if e["rows"] and e["at_s"] and SETTLE_S <= e["at_s"] < stall_at]
    after = [s for s in measured.observation.clock if s.at_s >= stall_at]
    late = [s.at_s for s in after if s.age_s > CAUGHT_UP_S]
    behind_at_the_end = bool(late) and late[-1] == after[-1].at_s
    caught_up_s = None if behind_at_the_end else late[-1] - stall_at - args.stall if late else 0.0
    link = system.get("link_slip_ns") or {}
    return {
        "tried": rate,
        "latency": {
            q: [e["event_latency_ns"][q] / 1e6 for e in steady if e["event_latency_ns"][q] is not None]
            for q in ("p50", "p99")
        },
        "cpu": {part: seconds / (rate * args.seconds) * 1e6 for part, seconds in watch.cpu_s.items()},
        "backlog": max((s.backlog for s in after), default=None),
        "age_s": max((s.age_s for s in after), default=None),
        "late_s": max(link.get("max") or 0, details["slip_ns"]["max"] or 0) / 1e9,
        "blocked_s": (system.get("link") or {}).get("longest_blocked_s"),
        "caught_up_s": caught_up_s,
        "check": check,
        "failure": system.get("failure"),
        "invalid": measured.observation.invalid,
    }  # fmt: skip


def measure(args: argparse.Namespace, place: Path, kept: Kept) -> None:
    """Measures all cells: first the rates, then the trials, whose rate follows from them."""
    broker = Broker(place / "broker")
    try:
        given = benchmark(broker.bootstrap, compiled(place / "classes"))
        store = Store(place / "artifacts")
        run = store.run("links")
        with prepared(given, store, run, "late20", step="links", scope={}), measuring("links") as token:
            for engine in args.engines:
                rates = {}
                for link in LINKS:
                    cell = Cell(experiment="late20", workload="hourly", system=f"{engine}-{link}")
                    with ready(given, store, cell, place / "work" / cell.name) as bench:
                        rates[link] = search(bench, token)
                    print(cell.name, rates[link], file=sys.stderr, flush=True)
                rate = SHARE * min(one["rate"] for one in rates.values() if one["rate"])
                for link in LINKS:
                    cell = Cell(experiment="late20", workload="hourly", system=f"{engine}-{link}")
                    with ready(given, store, cell, place / "work" / cell.name) as bench:
                        figures = trial(bench, round(rate, -2), token, int(broker.pid or 0), args)
                    kept.add({"engine": engine, "link": link, **rates[link], **figures})
                    print(json.dumps(kept.all[-1]), file=sys.stderr, flush=True)
    finally:
        broker.stop()


def spread(values: list[float]) -> str:
    return f"{median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})" if values else "-"


def thousands(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def cpu(part: str, one: Json) -> str:
    """CPU of a part, unless it does not count: the broker of a direct link holds nothing but answers."""
    used = one["cpu"].get(part) if part != "broker" or one["link"] == "kafka" else None
    return "-" if used is None else f"{used:.1f}"


def answers(one: Json) -> str:
    """Says whether the answers are right and complete."""
    check = one["check"]
    if not check:
        return "not checked"
    answers = f"{check['reported_rows']:,} of {check['expected_rows']:,}" if check.get("expected_rows") else "none"
    return f"{answers}, {'WRONG' if check.get('wrong') else 'right'}"


def table(records: list[Json]) -> Table:
    """A column for each cell."""
    made = Table("", *(f"{one['engine']}, {one['link']}" for one in records))
    rows: dict[str, Callable[[Json], str]] = {
        "ceiling, closed loop (rows/s)": lambda one: thousands(one["ceiling"]),
        "sustainable rate (rows/s)": lambda one: thousands(one["rate"]),
        "its 90 % interval": lambda one: " to ".join(map(thousands, one["interval"] or [])) or "-",
        "rate of the trial (rows/s)": lambda one: thousands(one["tried"]),
        "latency p50 (ms)": lambda one: spread(one["latency"]["p50"]),
        "latency p99 (ms)": lambda one: spread(one["latency"]["p99"]),
        **{f"CPU of the {part} (s per million rows)": partial(cpu, part) for part in CPU_OF},
        "stall: rows that waited": lambda one: thousands(one["backlog"]),
        "stall: age of the oldest (s)": lambda one: f"{one['age_s']:.1f}",
        "stall: a row was handed on late by (s)": lambda one: f"{one['late_s']:.2f}",
        "stall: the generator was blocked for (s)": lambda one: (
            "-" if one["blocked_s"] is None else f"{one['blocked_s']:.2f}"
        ),
        "stall: caught up after (s)": lambda one: (
            f"not within {AFTER_S:g}" if one["caught_up_s"] is None else f"{one['caught_up_s']:.1f}"
        ),
        "answers after all": answers,
        "why the trial does not count": lambda one: one["invalid"] or one["failure"] or "-",
    }
    for name, value in rows.items():
        made.add_row(name, *map(value, records))
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description="Direct, embedded queues, and Kafka between: what each link does")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--seconds", type=float, default=10.0, help="steady part of a trial")
    parser.add_argument("--stall", type=float, default=5.0, help="seconds for which the system is stopped")
    Kept.options(parser)
    parser.add_argument("--markdown", action="store_true", help="for docs/links.md")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    kept = Kept(args)
    if not args.print:
        with tempfile.TemporaryDirectory(prefix="streamgauge-links-") as place:
            measure(args, Path(place), kept)
    made = table(kept.all)
    if args.markdown:
        cells = [[str(cell) for cell in column.cells] for column in made.columns]
        heads = [str(column.header) for column in made.columns]
        print(*(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *zip(*cells, strict=True))), sep="\n")
    else:
        Console(width=200).print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
