"""A driver process: its settings, CPUs, listening and end."""

from __future__ import annotations

import ipaddress
import json
import os
import signal
import ssl
import threading
from pathlib import Path
from typing import NoReturn

from streamgauge.base.errors import UserError
from streamgauge.base.field_types import Model
from streamgauge.base.places import place
from streamgauge.base.units import Duration
from streamgauge.bench.driver.agent import Agent, driver_of
from streamgauge.bench.driver.child import end_with_parent, pin
from streamgauge.bench.driver.offer import Driver
from streamgauge.bench.driver.requests import Malformed, checked
from streamgauge.bench.driver.schedule import check_rate, check_seconds
from streamgauge.bench.driver.server import Server
from streamgauge.bench.driver.serving import Serving
from streamgauge.catalog.manifests import MANIFEST, Artifact, read_manifest

TOKEN = "STREAMGAUGE_TOKEN"  # an environment variable: everybody on the host can see arguments


class Settings(Model):
    """Settings of a driver process: what it serves, and where.

    stream: directory of a finished stream, others: those of further ones that take turns with it; or store: directory
    of artifacts, of which the controller names a stream.
    serving: what it serves of them; their SHA-256 is in their manifests. cpus: their numbers, separated by commas.
    rate (events/s) and seconds: those of a trial that is opened at once, with the name `attempt`.
    certificate, key: PEM files for TLS. open: listen beyond this host without a token.
    until_stdin_closes: end with the parent process.
    """

    stream: str | None = None
    others: tuple[str, ...] = ()
    serving: Serving = Serving()
    store: str | None = None
    host: str = "127.0.0.1"
    port: int = 0
    sentinel_horizon: str = "1d"
    rate: float | None = None
    seconds: float | None = None
    attempt: str = "by-hand"
    cpus: str | None = None
    certificate: str | None = None
    key: str | None = None
    open: bool = False
    until_stdin_closes: bool = False


def run(settings: Settings) -> NoReturn:
    """Prints one JSON line with its address, pid and stream, serves until it is told to end, and ends this process.

    Raises UserError.
    """
    handler, server = _listen(settings)
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    if settings.until_stdin_closes:
        threading.Thread(target=end_with_parent, args=(done,), daemon=True).start()
    partitions = handler.hello()["partitions"]
    about = {"host": settings.host, "port": server.port, "pid": os.getpid(), "partitions": partitions}
    print(json.dumps({**about, **handler.about()}), flush=True)
    done.wait()
    server.close()
    os._exit(0)  # Python's own end would unwind threads that are within Arrow, whose C++ then aborts the process


def _listen(settings: Settings) -> tuple[Driver | Agent, Server]:
    stream, store, rate, seconds = settings.stream, settings.store, settings.rate, settings.seconds
    if (rate is None) != (seconds is None):
        raise UserError("give --rate and --seconds both, or none and let the controller open the trials")
    if rate is not None and seconds is not None:
        check_rate(rate)
        check_seconds(seconds)
        if stream is None:
            raise UserError("--rate: needs the directory of a stream")
    token = os.environ.get(TOKEN, "")
    if not (token or settings.open or _is_loopback(settings.host)):
        raise UserError(
            f"--host: found {settings.host} without a token, so that anybody there could read the stream; put one into "
            f"{TOKEN}, or allow it by --open"
        )
    pin(settings.cpus)
    try:
        horizon = Duration.parse(settings.sentinel_horizon).ps
    except ValueError as problem:
        raise UserError(f"--sentinel-horizon: {problem}") from None
    handler: Driver | Agent
    if store is not None and stream is None:
        handler = Agent(Path(store), horizon_ps=horizon)
    elif stream is not None and store is None:
        handler = _driver(stream, settings, horizon)
    else:
        raise UserError("give the directory of a stream, or --store and let the controller name one")
    context = _tls(settings.certificate, settings.key)
    server = Server(handler, settings.host, settings.port, token=token, context=context)
    handler.drop_others = lambda name: server.drop(lambda attempt: attempt not in ("", name))
    if rate is not None:
        try:
            handler.answer(checked({"verb": "open", "attempt": settings.attempt, "rate": rate, "seconds": seconds}))
        except Malformed as problem:
            raise UserError(f"--{problem}") from None
    return handler, server


def _is_loopback(host: str) -> bool:
    """True for an address that only this host reaches."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _driver(stream: str, settings: Settings, horizon_ps: int) -> Driver:
    first, *others = (_artifact(place(one)) for one in (stream, *settings.others))
    columns = first.manifest.get("columns", {})
    for column in settings.serving.salted:
        if column not in columns:
            allowed = ", ".join(columns) or "none, as the stream has no columns"
            raise UserError(f"--salt: found {column!r}, allowed: {allowed}")
    return driver_of(first, settings.serving, horizon_ps=horizon_ps, others=others)


def _artifact(directory: Path) -> Artifact:
    """Returns the stream in a directory. Raises UserError if there is none."""
    try:
        return Artifact("stream", "", directory, read_manifest(directory / MANIFEST))
    except OSError as problem:
        raise UserError(
            f"{directory}: no finished stream there ({problem}); name the directory of its manifest"
        ) from None


def _tls(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as problem:
        raise UserError(f"{certificate}: cannot load certificate and key: {problem}") from None
    return context
