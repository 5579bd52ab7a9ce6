"""The command kafka, which starts a local broker to try jobs with."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.app.cli.common import app
from streamgauge.app.services.broker import Broker
from streamgauge.app.services.java_server import JavaServer
from streamgauge.app.services.local_registry import LocalRegistry
from streamgauge.base.errors import Outage, UserError


@app.command()
def kafka(
    port: Annotated[int, typer.Option(min=0, max=65535, help="port to listen on; 0 takes a free one")] = 9092,
    directory: Annotated[
        Path | None, typer.Option(help="folder that keeps the broker's data; by default it is removed at the end")
    ] = None,
    registry: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="also start a schema registry, on this port; 0 takes a free one. It keeps no data"
        ),
    ] = None,
) -> None:
    """Start a local Kafka broker to try jobs with, print its address, and stop it on Ctrl-C.

    Its jars are those of `make kafka`. It listens on 127.0.0.1 alone, without encryption and access control.
    """
    with tempfile.TemporaryDirectory(prefix="streamgauge-kafka-") as scratch:
        _serve(directory or Path(scratch), port, registry)


def _serve(work: Path, port: int, registry_port: int | None) -> None:
    """Starts the servers, prints their addresses, and waits until one of them ends."""
    servers: list[JavaServer] = []
    try:
        try:
            servers.append(Broker(work, port))
        except ImportError as problem:
            raise UserError(f"confluent-kafka is not installed here ({problem}); install the extra kafka") from None
        if registry_port is not None:
            servers.append(LocalRegistry(work, registry_port))
        print(*(server.address for server in servers), sep="\n", flush=True)
        while all(server.alive() for server in servers):
            time.sleep(0.2)
        ended = next(server for server in servers if not server.alive())
        raise Outage(f"{ended.title} has ended; the end of its log: {ended.last_line()}")
    finally:
        for server in servers:
            server.stop()
