"""The driver as a process of its own: arguments, CPUs, listening, and its end."""

from __future__ import annotations

import argparse
import json
import os
import signal
import ssl
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge import config
from streamgauge.artifacts import MANIFEST
from streamgauge.driver.offer import Driver
from streamgauge.driver.replay import load_stream
from streamgauge.driver.schedule import check_rate, check_seconds
from streamgauge.driver.server import Server
from streamgauge.errors import UserError
from streamgauge.schemas import COLUMN_TYPES, STREAM
from streamgauge.units import Duration

TOKEN = "STREAMGAUGE_TOKEN"  # in the environment: arguments are seen by everybody on the host


def main(arguments: list[str] | None = None) -> int:
    """`streamgauge driver`: prints one JSON line with host, port and pid, then serves until it is told to end."""
    args = _parser().parse_args(arguments)
    try:
        driver, server = _listen(args)
    except UserError as problem:
        print(f"streamgauge driver: {problem}", file=sys.stderr)
        return 2
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    if args.until_stdin_closes:
        threading.Thread(target=end_with_parent, args=(done,), daemon=True).start()
    about = {"host": args.host, "port": server.port, "pid": os.getpid(), "partitions": len(driver.partitions)}
    print(json.dumps({**about, **driver.about()}), flush=True)
    done.wait()
    server.close()
    return 0


def _listen(args: argparse.Namespace) -> tuple[Driver, Server]:
    share = _share(args.share)
    replay = config.parse(
        config.Replay,
        {
            "mode": args.mode,
            "profile": args.profile,
            "partitions": args.partitions,
            "densify": args.densify,
            "queue_seconds": args.queue_seconds,
            "max_memory_mb": args.max_memory_mb,
        },
        "streamgauge driver",
    )
    if share[0] >= replay.partitions:
        raise UserError(f"--share: found {args.share}, but {replay.partitions} partitions leave nothing for it")
    if (args.rate is None) != (args.seconds is None):
        raise UserError("give --rate and --seconds both, or none and let the controller open the trials")
    if args.rate is not None:
        check_rate(args.rate), check_seconds(args.seconds)
    pin(args.cpus)
    files, tick, columns = _artifact(Path(args.stream), args.columns)
    stream = load_stream(
        files,
        tick,
        columns,
        line=args.line,
        max_memory_mb=args.max_memory_mb,
        densify=args.densify,
        salted=args.salt or (),
    )
    try:
        horizon = Duration.parse(args.sentinel_horizon).ps
    except ValueError as problem:
        raise UserError(f"--sentinel-horizon: {problem}") from None
    driver = Driver(stream, replay, share=share, horizon_ps=horizon)
    server = Server(
        driver, args.host, args.port, token=os.environ.get(TOKEN, ""), context=_tls(args.certificate, args.key)
    )
    driver.drop_others = lambda name: server.drop(lambda attempt: attempt not in ("", name))
    if args.rate is not None:
        driver.verb("open", {"attempt": args.attempt, "rate": args.rate, "seconds": args.seconds})
    return driver, server


def _artifact(place: Path, wanted: str | None) -> tuple[list[Path], Any, dict[str, str]]:
    """Files, tick and declared columns of a stream artifact's directory."""
    try:
        manifest = json.loads((place / MANIFEST).read_text())
    except (OSError, ValueError) as problem:
        raise UserError(f"{place}: no finished stream there ({problem}); name the directory of its manifest") from None
    files = [place / name for name in manifest.get("files", []) if name.endswith(".parquet")]
    if not files:
        raise UserError(f"{place}: its manifest names no Parquet files; generate the stream with output parquet")
    try:
        found = pq.read_schema(files[0])
    except (OSError, pa.ArrowException) as problem:
        raise UserError(f"{files[0]}: no readable part of a stream: {problem}") from None
    kinds = {kind: name for name, kind in COLUMN_TYPES.items()}
    declared = {
        field.name: kinds[field.type]
        for field in found
        if field.name not in {*STREAM.names, "arrival_time"} and field.type in kinds
    }
    if wanted is not None:
        names = [name for name in wanted.split(",") if name]
        for name in names:
            if name not in declared:
                raise UserError(f"--columns: found {name!r}, allowed: {', '.join(declared) or 'none'}")
        declared = {name: declared[name] for name in names}
    return files, manifest.get("tick", "ns"), declared


def _share(text: str) -> tuple[int, int]:
    first, slash, count = text.partition("/")
    if not slash or not first.isdigit() or not count.isdigit() or int(first) >= int(count):
        raise UserError(f"--share: found {text!r}, allowed: i/n with i below n, such as 0/2")
    return int(first), int(count)


def _tls(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as problem:
        raise UserError(f"{certificate}: no usable certificate and key: {problem}") from None
    return context


def pin(cpus: str | None) -> None:
    """Binds this process to CPUs such as '0,2'. Raises UserError where that is impossible."""
    if not cpus:
        return
    try:
        os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    except (AttributeError, ValueError, OSError) as problem:
        allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else "none on this system"
        raise UserError(f"--cpus: found {cpus!r} ({problem}), allowed: some of {allowed}") from None


def end_with_parent(done: threading.Event) -> None:
    """Whoever holds the other end of our standard input may die in any way: then it closes."""
    while os.read(0, 4096):
        pass
    done.set()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="streamgauge driver", description="Serves a stream to systems under test.")
    parser.add_argument("stream", help="directory of a finished stream: the one with manifest.json")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at")
    parser.add_argument("--port", type=int, default=0, help="0: any free one, see the JSON line")
    parser.add_argument("--partitions", type=int, default=1, help="queues of the whole trial")
    parser.add_argument("--share", default="0/1", help="i/n: this is process i of n, with every n-th queue")
    parser.add_argument("--mode", default="constant", choices=("constant", "time_map"))
    parser.add_argument("--profile", default="constant", choices=("constant", "steps", "sine", "burst", "source"))
    parser.add_argument("--densify", type=int, default=1, help="copies of each event under salted keys")
    parser.add_argument("--salt", action="append", help="key column to be salted; several times")
    parser.add_argument("--columns", help="declared columns to send, by comma; without it, all of them")
    parser.add_argument("--line", action="store_true", help="send the original line too")
    parser.add_argument("--queue-seconds", type=float, default=30.0)
    parser.add_argument("--max-memory-mb", type=int, default=1024)
    parser.add_argument("--sentinel-horizon", default="1d", help="how far beyond the last event the sentinel is")
    parser.add_argument("--rate", type=float, help="open one trial at once, at so many events/s")
    parser.add_argument("--seconds", type=float, help="and for so long")
    parser.add_argument("--attempt", default="by-hand", help="and under this name")
    parser.add_argument("--cpus", help="pin to these CPUs, by comma")
    parser.add_argument("--certificate", help="PEM file: speak TLS")
    parser.add_argument("--key", help="its private key, if not in the same file")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end with the parent process")
    return parser
