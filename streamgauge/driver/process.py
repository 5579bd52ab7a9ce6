"""The command `streamgauge driver`, a driver process: its arguments, CPUs, listening and end."""

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

from streamgauge import config
from streamgauge.base.errors import UserError
from streamgauge.base.places import place
from streamgauge.base.units import Duration
from streamgauge.catalog.artifacts import MANIFEST
from streamgauge.driver.agent import Agent, driver_of
from streamgauge.driver.child import end_with_parent, pin
from streamgauge.driver.offer import Driver
from streamgauge.driver.schedule import check_rate, check_seconds
from streamgauge.driver.server import Server

TOKEN = "STREAMGAUGE_TOKEN"  # an environment variable: everybody on the host can see arguments


def main(arguments: list[str] | None = None) -> int:
    """`streamgauge driver`: prints one JSON line with host, port and pid, then serves until it is told to end."""
    args = _parser().parse_args(arguments)
    try:
        handler, server = _listen(args)
    except UserError as problem:
        print(f"streamgauge driver: {problem}", file=sys.stderr)
        return 2
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    if args.until_stdin_closes:
        threading.Thread(target=end_with_parent, args=(done,), daemon=True).start()
    about = {"host": args.host, "port": server.port, "pid": os.getpid(), "partitions": handler.hello()["partitions"]}
    print(json.dumps({**about, **handler.about()}), flush=True)
    done.wait()
    server.close()
    return 0


def _listen(args: argparse.Namespace) -> tuple[Driver | Agent, Server]:
    if (args.stream is None) == (args.store is None):
        raise UserError("give the directory of a stream, or --store and let the controller name one")
    if (args.rate is None) != (args.seconds is None):
        raise UserError("give --rate and --seconds both, or none and let the controller open the trials")
    if args.rate is not None:
        check_rate(args.rate), check_seconds(args.seconds)
        if args.stream is None:
            raise UserError("--rate: needs the directory of a stream")
    pin(args.cpus)
    try:
        horizon = Duration.parse(args.sentinel_horizon).ps
    except ValueError as problem:
        raise UserError(f"--sentinel-horizon: {problem}") from None
    handler = Agent(Path(args.store), horizon_ps=horizon) if args.store else _driver(args, horizon)
    server = Server(
        handler, args.host, args.port, token=os.environ.get(TOKEN, ""), context=_tls(args.certificate, args.key)
    )
    handler.drop_others = lambda name: server.drop(lambda attempt: attempt not in ("", name))
    if args.rate is not None:
        handler.verb("open", {"attempt": args.attempt, "rate": args.rate, "seconds": args.seconds})
    return handler, server


def _driver(args: argparse.Namespace, horizon_ps: int) -> Driver:
    keys = ("mode", "profile", "partitions", "densify", "queue_seconds", "max_memory_mb")
    replay = config.parse(config.Replay, {key: getattr(args, key) for key in keys}, "streamgauge driver")
    names = None if args.columns is None else [name for name in args.columns.split(",") if name]
    manifest, files = _artifact(place(args.stream))
    for column in args.salt or ():
        if column not in manifest["columns"]:
            allowed = ", ".join(manifest["columns"]) or "none, as the stream has no columns"
            raise UserError(f"--salt: found {column!r}, allowed: {allowed}")
    return driver_of(
        manifest, files, replay, names=names, line=args.line, salted=args.salt or (), share=args.share,
        horizon_ps=horizon_ps,
    )  # fmt: skip


def _artifact(directory: Path) -> tuple[dict[str, Any], list[Path]]:
    """Returns the manifest and files of the stream in a directory. Raises UserError if there is none."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text())
    except (OSError, ValueError) as problem:
        raise UserError(
            f"{directory}: no finished stream there ({problem}); name the directory of its manifest"
        ) from None
    return manifest, [directory / name for name in manifest.get("files", [])]


def _tls(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as problem:
        raise UserError(f"{certificate}: cannot load certificate and key: {problem}") from None
    return context


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="streamgauge driver", description="Serves a stream to systems under test.")
    parser.add_argument("stream", nargs="?", help="directory of a finished stream: the one with manifest.json")
    parser.add_argument(
        "--store", help="instead, the artifacts' directory: the controller names the stream and all settings"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; with 0 a free one, see the JSON line")
    parser.add_argument("--partitions", type=int, default=1, help="number of queues of the whole trial")
    parser.add_argument("--share", default="0/1", help="i/n for process i of n, which has every n-th queue")
    parser.add_argument("--mode", default="constant", choices=("constant", "time_map"))
    parser.add_argument("--profile", default="constant", choices=("constant", "steps", "sine", "burst", "source"))
    parser.add_argument("--densify", type=int, default=1, help="copies of each event under salted keys")
    parser.add_argument("--salt", action="append", help="key column to salt; may be repeated")
    parser.add_argument("--columns", help="declared columns to send, separated by commas; by default all")
    parser.add_argument("--line", action="store_true", help="send the original line too")
    parser.add_argument("--queue-seconds", type=float, default=30.0)
    parser.add_argument("--max-memory-mb", type=int, default=1024)
    parser.add_argument("--sentinel-horizon", default="1d", help="distance from the last event to the sentinel")
    parser.add_argument("--rate", type=float, help="open one trial at once, at this rate in events/s")
    parser.add_argument("--seconds", type=float, help="length of that trial, s")
    parser.add_argument("--attempt", default="by-hand", help="name of that trial")
    parser.add_argument("--cpus", help="pin to these CPUs, separated by commas")
    parser.add_argument("--certificate", help="PEM file: speak TLS")
    parser.add_argument("--key", help="private key of the certificate, if it is not in the same file")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end with the parent process")
    return parser
