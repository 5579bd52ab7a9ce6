"""The whole DAG on several hosts of this machine, beside the embedded run: same stream, same answers.

    .venv/bin/python -m tests.e2e.several_hosts [--delay-ms 0 5] [--loss-percent 0]
        [--environment dist/environment.tar.gz]

Spark's master, two workers, two generators and Airflow have a network namespace each (needs root and iproute2). With
the packed environment the executors of batch stages have no other Python packages.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from rich.console import Console
from rich.table import Table

from streamgauge.base.jsonl import read_jsonl
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import load
from streamgauge.streams.keys import stream_key
from tests.e2e.hosts import Hosts, Unavailable
from tests.e2e.processes import COMMAND, FLIGHTS, QUICK, start, wait_for

NAMES = ("master", "worker1", "worker2", "generator1", "generator2", "airflow")
SPARK_CLASS = str(Path(sys.executable).with_name("spark-class"))
TOKEN = {"STREAMGAUGE_TOKEN": "secret"}
RATE, SECONDS = 400, 6
ASK = """
import json, socket, sys
wire = socket.create_connection((sys.argv[1], int(sys.argv[2]))).makefile("rw")
for request in ({"verb": "hello", "version": 1, "token": "secret"}, {"verb": "status"}):
    print(json.dumps(request), file=wire, flush=True)
    answer = wire.readline()
print(answer)
"""


class Site:
    """`with Site(hosts, folder) as site`: two generators that serve folder/artifacts; site.cluster() adds Spark's."""

    def __init__(self, hosts: Hosts, folder: Path) -> None:
        self.hosts, self.folder, self.artifacts = hosts, folder, folder / "artifacts"
        self.master = f"spark://{hosts['master']}:7077"
        self.generators = [f"{hosts[name]}:7100" for name in NAMES if name.startswith("generator")]
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(self._end)
            for name in ("generator1", "generator2"):
                self.generator(name)
            wait_for(lambda: self.status(0) and self.status(1), "two generators", 180)
            stack.pop_all()
        return self

    def cluster(self) -> None:
        """Starts a standalone Spark cluster of two workers."""
        self._spark("master", "master.Master", "--port", "7077", "--webui-port", "8080")
        wait_for(lambda: "alive" in self._state(), "Spark master", 180)
        for name in ("worker1", "worker2"):
            self.worker(name)
        wait_for(lambda: self._state().get("aliveworkers") == 2, "two workers", 180)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def worker(self, name: str) -> None:
        place = str(self.folder / name)
        self._spark(name, "worker.Worker", "--webui-port", "0", "-c", "1", "-m", "1g", "-d", place, self.master)

    def generator(self, name: str) -> None:
        command = [COMMAND, "driver", "--store", str(self.artifacts)]
        self._launch(name, [*command, "--host", "0.0.0.0", "--port", "7100"], TOKEN)

    def lose(self, name: str) -> None:
        """A worker's host crashes, and comes back."""
        assert self.hosts.kill(name)
        self.worker(name)

    def unpacked(self) -> set[Path]:
        """Environments that executors have at the moment."""
        return {place for name in NAMES for place in self.folder.glob(f"{name}/app-*/*/environment/bin/python")}

    def status(self, generator: int) -> dict[str, Any]:
        """Status of a generator's trial; {} before the first."""
        host, _, port = self.generators[generator].partition(":")
        done = subprocess.run(
            self.hosts.command("airflow", [sys.executable, "-S", "-c", ASK, host, port]), capture_output=True, text=True
        )
        return dict(json.loads(done.stdout)) if done.returncode == 0 else {}

    def measures(self, seconds: float, *, hold: bool = False) -> bool:
        """True once a trial, or with `hold` a closed loop, has been offered for so long."""
        now = self.status(0)
        if now.get("state") != "started" or now["hold"] is not hold:
            return False
        return bool(now["wall_ns"] - now["start_wall_ns"] > seconds * 1e9)

    def config(self, **more: Any) -> Path:
        return write(
            self.folder / "site.yaml", self.master,
            {"remote": self.generators, "token_variable": "STREAMGAUGE_TOKEN", "max_clock_offset": "1s"}, **more,
        )  # fmt: skip

    def run(self, look: Callable[[], object] = lambda: None, environment: Path | None = None, **more: Any) -> Outcome:
        """`streamgauge run` on the host of Airflow; look: called while it runs; environment: packed, for executors."""
        spark: dict[str, Any] = {"conn_type": "spark", "host": self.master}
        if environment:
            spark["extra"] = {"environment": str(environment)}
        connection = {"AIRFLOW_CONN_STREAMGAUGE_SPARK": json.dumps(spark)}
        config, log = self.config(**more), self.folder / "airflow.log"
        return run(config, self.artifacts, log, look, self.airflow(), **connection, **TOKEN, **QUICK)

    def airflow(self) -> list[str]:
        """Prefix that runs a command on the host of Airflow, which measures too."""
        return self.hosts.command("airflow", [])

    def _spark(self, name: str, kind: str, *arguments: str) -> None:
        command = [SPARK_CLASS, f"org.apache.spark.deploy.{kind}", "-h", self.hosts[name], *arguments]
        self._launch(name, command, QUICK | {"PYSPARK_PYTHON": sys.executable, "SPARK_DAEMON_MEMORY": "256m"})

    def _launch(self, name: str, command: list[str], variables: dict[str, str]) -> None:
        with open(self.folder / f"{name}.log", "ab") as log:
            self._started.append(
                subprocess.Popen(
                    self.hosts.command(name, command), cwd=self.folder, stdout=log, stderr=subprocess.STDOUT,
                    env=os.environ | variables | {"SPARK_LOCAL_IP": self.hosts[name]}, stdin=subprocess.DEVNULL,
                )
            )  # fmt: skip

    def _state(self) -> dict[str, Any]:
        ask = "import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())"
        page = f"http://{self.hosts['master']}:8080/json/"
        command = self.hosts.command("airflow", [sys.executable, "-c", ask, page])
        done = subprocess.run(command, capture_output=True)
        return {"alive": True, **json.loads(done.stdout)} if done.returncode == 0 else {}

    def _end(self) -> None:
        for name in NAMES:
            self.hosts.kill(name)
        for process in self._started:
            process.wait(timeout=30)


@dataclass(frozen=True)
class Outcome:
    """Facts that two runs must have in common, and the seconds of each."""

    sha256: str
    out_of_order: int
    trials: list[dict[str, Any]]  # of search and latency: rate, offered, outcome, reason, check, clocks
    seconds: float

    @property
    def answers(self) -> set[tuple[int, ...]]:
        """Events offered, result rows and checksum of each checked trial."""
        return {
            (t["observation"]["offered"], t["check"]["reported_rows"], t["check"]["reported_checksum"])
            for t in self.trials
            if t["check"]
        }


def write(path: Path, master: str, replay: dict[str, Any], **more: Any) -> Path:
    """A cell with one rate, 20 % out of order; the watermark waits for the latest event, so nothing is dropped.

    Batches are large, as the search begins with 20,000 rows waiting, and each batch costs a second over the network.
    """
    executors = {"spark.executor.memory": "600m", "spark.sql.shuffle.partitions": "2"}
    raw: dict[str, Any] = {
        "name": path.stem,
        "source": {
            "files": str(FLIGHTS),
            "time": {"column": "sched", "format": "%Y-%m-%d %H:%M:%S"},
            "order": "event_time",
            "columns": {"carrier": "string", "flight": "int64"},
        },
        "scale": 0.1,
        "experiments": [{"name": "wild", "target_percent": 20, "delay": {"max": "2h"}, "seed": 7}],
        "workloads": [
            {"name": "hourly", "query": "windowed_aggregation", "key": "carrier", "value": "flight",
             "window": "6h", "watermark": "2h"}
        ],
        "systems": [{"name": "spark", "master": master, "memory": "1g", "batch_rows": 5000, "conf": executors}],
        "replay": {"partitions": 2, "max_memory_mb": 128, "max_slip": "5s", **replay},
        "search": {
            # one rate for all hosts: more than RATE is not published; the latency run is what is compared
            "max_rate": RATE, "warmup_seconds": 0, "window_seconds": 0.5, "proof_steps": 0, "max_age": "60s",
            "yardstick": False,
        },
        "latency": {"fractions": [1.0], "seconds": SECONDS},
        **more,
    }  # fmt: skip
    path.write_text(yaml.safe_dump(raw))
    return path


def run(
    config: Path, artifacts: Path, log: Path, look: Callable[[], object], prefix: list[str], **variables: str
) -> Outcome:
    begin = time.monotonic()
    place = dict.fromkeys(("TMPDIR", "STREAMGAUGE_LOCKS"), str(config.parent))
    process = start(["run", str(config), "--artifacts", str(artifacts)], log, prefix, **place, **variables)
    try:
        wait_for(lambda: look() or process.poll() is not None, "end of the run", 1500)
        assert process.wait() == 0, log.read_text()
    finally:
        process.kill()
    [directory] = [place for place in (artifacts / "runs").iterdir() if place.name.startswith(config.stem)]
    assert {stage.state for stage in RunLog(directory).stages()} == {"done"}
    benchmark, store = load(config), Store(artifacts)
    manifest = store.need("stream", stream_key(store, benchmark, benchmark.experiments[0]), "generate").manifest
    [cell] = (directory / "cells").iterdir()
    trials = [record for name in ("trials", "latency-trials") for record in read_jsonl(cell / f"{name}.jsonl")]
    return Outcome(manifest["sha256"], manifest["achieved_out_of_order"], trials, time.monotonic() - begin)


def embedded(folder: Path) -> Outcome:
    """The same, all on one host."""
    config = write(folder / "embedded.yaml", "local[2]", {"processes": 2})
    return run(config, folder / "embedded", folder / "embedded.log", lambda: None, [])


def main() -> int:
    parser = argparse.ArgumentParser(description="The whole DAG on several hosts of this machine")
    parser.add_argument("--delay-ms", type=float, nargs="+", default=[0.0, 5.0])
    parser.add_argument("--loss-percent", type=float, default=0.0)
    parser.add_argument("--environment", type=Path, help="what `make environment` made, for executors")
    args = parser.parse_args()
    environment = args.environment and args.environment.resolve(strict=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that hosts are removed
    console = Console(width=160)
    table = Table(
        "run", "network", "stream", "out of order", "trial", "offered", "rows", "checksum", "clocks (ms)", "s"
    )
    with tempfile.TemporaryDirectory(prefix="streamgauge-hosts-") as scratch:
        (folder := Path(scratch) / "one").mkdir()
        one = embedded(folder)
        _show(table, "embedded", "loopback", one)
        same = True
        for delay in args.delay_ms:
            (folder := Path(scratch) / f"several-{delay:g}").mkdir()
            try:
                with Hosts(NAMES, delay_ms=delay, loss_percent=args.loss_percent) as hosts, Site(hosts, folder) as site:
                    site.cluster()
                    unpacked: set[Path] = set()
                    found = site.run(partial(_note_unpacked, site, unpacked), environment)
                    _show(table, f"6 hosts, {delay:g} ms", hosts.how, found)
            except Unavailable as problem:
                console.print(f"not here: {problem}")
                return 1
            if environment:
                console.print(f"executors unpacked {environment.name} {len(unpacked)} times")
            same &= (found.sha256, found.answers) == (one.sha256, one.answers) and bool(one.answers)
    console.print(table)
    console.print("equal: stream and answers" if same else "[red]different[/]")
    return 0 if same else 1


def _note_unpacked(site: Site, found: set[Path]) -> None:
    found |= site.unpacked()


def _show(table: Table, name: str, network: str, found: Outcome) -> None:
    for trial in found.trials:
        check = trial["check"] or {}
        clock = trial["details"]["system_clock_offset_ns"]
        table.add_row(
            name, network, found.sha256[:12], str(found.out_of_order), trial["outcome"],
            str(trial["observation"]["offered"]), str(check.get("reported_rows")),
            f"{check.get('reported_checksum', 0):x}" + ("" if trial["correct"] else " not right"),
            f"{clock[0] / 1e6:+.2f} ± {clock[1] / 1e6:.2f}" if clock else "", f"{found.seconds:.0f}",
        )  # fmt: skip
        name = network = ""


if __name__ == "__main__":
    sys.exit(main())
