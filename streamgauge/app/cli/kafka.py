"""The command kafka, which starts a local broker to try jobs with."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.base.errors import Outage, UserError


def register(app: typer.Typer) -> None:
    app.command()(kafka)


def kafka(
    port: Annotated[int, typer.Option(min=0, max=65535, help="port to listen on; 0 takes a free one")] = 9092,
    directory: Annotated[
        Path | None, typer.Option(help="folder that keeps the broker's data; by default it is removed at the end")
    ] = None,
) -> None:
    """Start a local Kafka broker to try jobs with, print its address, and stop it on Ctrl-C.

    Its jars are those of `make kafka`. It listens on 127.0.0.1 alone, without encryption and access control.
    """
    with tempfile.TemporaryDirectory(prefix="streamgauge-kafka-") as scratch:
        _serve(directory or Path(scratch), port)


def _serve(work: Path, port: int) -> None:
    try:
        from streamgauge.bench.publish.broker import Broker

        broker = Broker(work, port)
    except ImportError as problem:
        raise UserError(f"confluent-kafka is not installed here ({problem}); install the extra kafka") from None
    try:
        print(broker.bootstrap, flush=True)
        while broker.alive():
            time.sleep(0.2)
        raise Outage(f"the broker has ended; the end of its log: {broker.last_line()}")
    finally:
        broker.stop()
