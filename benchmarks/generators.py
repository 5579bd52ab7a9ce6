"""Measures what 1, 2 and 4 generator processes deliver, and what limits them.

    .venv/bin/python -m benchmarks.generators [--processes 1 2 4] [--seconds 1.5] [--repeats 3] [--mbit 100] [--json]

There are two consumers. One discards the rows, with a thread for each generator (the driver's ceiling); the other is
the known system without a limit. They are measured first on this machine as it is, where generators and consumer share
its cores. Then each generator has a host whose link carries --mbit Mbit/s, so that links and not cores are the limit.
That needs root and iproute2, and the hosts share the cores, so their sum must stay below what the cores carry. The
tables have medians and (least, most).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from streamgauge.bench.driver.ceiling import HELD_ROWS, ceiling
from streamgauge.bench.driver.closed_loop import ClosedLoop
from streamgauge.bench.driver.fleet import Drivers, Fleet, RemoteDrivers
from streamgauge.bench.driver.replay import wire_schema
from streamgauge.bench.driver.trial_request import TrialRequest
from streamgauge.bench.engines.known.known_system import KnownSystem
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.bench.measure.calibrate import small_stream
from streamgauge.catalog.artifacts import Artifact
from streamgauge.config import Replay, Workload
from tests.e2e.hosts import Hosts, Unavailable

PARTITIONS, MEMORY_MB = 4, 48  # small queues: what waits in them is read before anything is measured
#: bytes on the link for each byte of rows: TCP and IP have headers
HEADERS = 1.03
Figures = dict[str, float]  # events/s and CPU-µs an event, of generators and consumer


def measure(drivers: Drivers, work: Path, seconds: float) -> Figures:
    most = ceiling(drivers, seconds)
    known = KnownSystem(KnownSettings(name="known", engine="known"), work)
    known.start()
    workload = Workload(name="all", query="passthrough")
    loop = ClosedLoop(known, drivers, TrialRequest(workload, work), continuous=True)
    batches = loop.window(HELD_ROWS, lambda seen: sum(batch.seconds for batch in seen) >= seconds)
    run = loop.close()
    rows, lasted = sum(batch.rows for batch in batches), sum(batch.seconds for batch in batches)
    taken = max(1, run.observation.taken)
    return {
        "ceiling": most.events_per_s,
        "generator_us": most.driver_cpu_us_per_event,
        "consumer_us": most.consumer_cpu_us_per_event,
        "known": rows / lasted if lasted else 0.0,
        "known_us": 1e6 * (run.details["system"].get("cpu_seconds") or 0) / taken,
        "row_bytes": row_bytes(drivers),
    }


def row_bytes(drivers: Drivers) -> float:
    """Bytes of a row on the wire, whose columns all have a fixed width here."""
    return float(sum(f.type.bit_width for f in wire_schema(drivers.columns, line=drivers.line)) / 8)


def replay_of(processes: int, remote: Sequence[str] = ()) -> Replay:
    own = {"remote": tuple(remote)} if remote else {"processes": processes}
    return Replay(partitions=PARTITIONS, max_memory_mb=MEMORY_MB, **own)


def here(stream: Path, processes: int, seconds: float) -> Figures:
    with Fleet(stream, replay_of(processes), tick="ns", columns={}) as fleet:
        return measure(fleet, stream, seconds)


def there(stream: Path, remote: list[str], seconds: float) -> Figures:
    remote_drivers = RemoteDrivers.at(Artifact("stream", "", stream, {}), replay_of(0, remote), tick="ns", columns={})
    return measure(remote_drivers, stream, seconds)


@contextmanager
def generators(hosts: Hosts, names: Sequence[str], stream: Path) -> Iterator[list[str]]:
    """Starts a generator on each of these hosts; yields their addresses."""
    with ExitStack() as stack:
        for number, name in enumerate(names):
            driver = str(Path(sys.executable).with_name("streamgauge"))
            command = [driver, "driver", str(stream), "--columns", "", "--open"]
            command += ["--port", "7100", "--partitions", str(PARTITIONS), "--share", f"{number}/{len(names)}"]
            command += ["--host", "0.0.0.0", "--max-memory-mb", str(MEMORY_MB // len(names))]
            started = subprocess.Popen(hosts.command(name, command), stdout=subprocess.PIPE)
            stack.callback(started.wait)
            stack.callback(started.terminate)
            assert started.stdout is not None
            started.stdout.readline()
        yield [f"{hosts[name]}:7100" for name in names]


def on_hosts(stream: Path, processes: int, seconds: float, mbit: float) -> Figures:
    """Measures from a process on a host of its own."""
    names = [f"generator{number}" for number in range(processes)]
    with Hosts(["system", *names], mbit=mbit) as hosts, generators(hosts, names, stream) as addresses:
        command = [sys.executable, "-m", "benchmarks.generators", "--remote", *addresses, "--stream", str(stream)]
        command += ["--seconds", str(seconds)]
        done = subprocess.run(hosts.command("system", command), check=True, capture_output=True, text=True)
    figures: Figures = json.loads(done.stdout)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="What 1, 2 and 4 generator processes deliver")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--seconds", type=float, default=1.5, help="of one measurement")
    parser.add_argument("--repeats", type=int, default=3, help="rounds over all of them")
    parser.add_argument("--mbit", type=float, default=100.0, help="of each generator's link")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--remote", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--stream", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.remote:
        print(json.dumps(there(args.stream, args.remote, args.seconds)))
        return
    shared: dict[int, list[Figures]] = {n: [] for n in args.processes}
    linked: dict[int, list[Figures]] = {n: [] for n in args.processes}
    with tempfile.TemporaryDirectory(prefix="streamgauge-") as scratch:
        stream = small_stream(Path(scratch), seed=1)
        for _ in range(args.repeats):
            for n in args.processes:
                shared[n].append(here(stream, n, args.seconds))
                try:
                    linked[n].append(on_hosts(stream, n, args.seconds, args.mbit))
                except Unavailable as problem:
                    print(f"no hosts here: {problem}", file=sys.stderr)
    if args.json:
        print(json.dumps({"cores": len(os.sched_getaffinity(0)), "shared": shared, "linked": linked}))
        return
    console, cores = Console(width=130), len(os.sched_getaffinity(0))
    console.print(_table(f"{cores} cores shared by generators and consumer", shared, cores))
    if all(linked.values()):
        console.print(_table(f"a host for each generator, {args.mbit:g} Mbit/s each", linked, cores, args.mbit))


def _table(title: str, figures: dict[int, list[Figures]], cores: int, mbit: float | None = None) -> Table:
    names = ["generators", "ceiling, k events/s", "×", "model", "known system, k events/s", "×"]
    table = Table(*names, "generator CPU-µs", "consumer CPU-µs", title=title, title_justify="left")
    first = figures[min(figures)]
    for n, rounds in figures.items():
        table.add_row(
            str(n),
            _spread(rounds, "ceiling", 1e-3),
            _growth(rounds, first, "ceiling"),
            f"{model(n, first, cores, mbit) / 1e3:,.0f}",
            _spread(rounds, "known", 1e-3),
            _growth(rounds, first, "known"),
            _spread(rounds, "generator_us", 1, 2),
            _spread(rounds, "consumer_us", 1, 2),
        )
    return table


def model(n: int, one: list[Figures], cores: int, mbit: float | None) -> float:
    """Predicted events/s of n generators: the least of what they, their consumer, all cores and the links can carry.

    A generator costs g and its consumer c CPU-µs an event, as measured with one generator. Each of the two uses at most
    one core (Python), which gives 1/max(g, c) for a pair. All cores give 1/(g + c) each, and a link its bits.
    """
    g, c = (median(figures[name] for figures in one) for name in ("generator_us", "consumer_us"))
    limits = [n * 1e6 / max(g, c), 1e6 / c, cores * 1e6 / (g + c)]
    if mbit is not None:
        limits.append(n * mbit * 1e6 / 8 / (one[0]["row_bytes"] * HEADERS))
    return min(limits)


def _values(rounds: list[Figures], name: str) -> list[float]:
    return [figures[name] for figures in rounds]


def _spread(rounds: list[Figures], name: str, scale: float, digits: int = 0) -> str:
    low, middle, high = (f(_values(rounds, name)) * scale for f in (min, median, max))
    return f"{middle:,.{digits}f} ({low:,.{digits}f}, {high:,.{digits}f})"


def _growth(rounds: list[Figures], first: list[Figures], name: str) -> str:
    return f"{median(_values(rounds, name)) / max(1e-9, median(_values(first, name))):.2f}"


if __name__ == "__main__":
    main()
