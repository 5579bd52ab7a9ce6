"""The command driver, which starts one driver process by hand."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from streamgauge.app.cli.common import app

_Mode = Literal["constant", "time_map"]
_Profile = Literal["constant", "steps", "sine", "burst", "source"]


@app.command()
def driver(
    stream: Annotated[
        str | None, typer.Argument(help="directory of a finished stream: the one with manifest.json")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="instead, the directory of the artifacts: the controller names the stream and all settings"),
    ] = None,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="port to listen on; 0 takes a free one, which the JSON line names")] = 0,
    partitions: Annotated[int, typer.Option(help="number of queues of the whole trial")] = 1,
    share: Annotated[str, typer.Option(help="i/n for process i of n, which has every n-th queue")] = "0/1",
    mode: Annotated[
        _Mode, typer.Option(help="constant: one rate; time_map: the source's pauses, shortened by one factor")
    ] = "constant",
    profile: Annotated[_Profile, typer.Option(help="how the rate changes around its mean")] = "constant",
    densify: Annotated[int, typer.Option(help="copies of each event under salted keys")] = 1,
    salt: Annotated[list[str] | None, typer.Option(help="key column to salt; repeat the option for several")] = None,
    partition_by: Annotated[
        str | None, typer.Option(help="column whose values decide an event's queue; by default events take turns")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="declared columns to send, separated by commas; by default all")
    ] = None,
    line: Annotated[bool, typer.Option("--line", help="send the original line too")] = False,
    queue_seconds: Annotated[float, typer.Option(help="longest time that an event waits in a queue, s")] = 30.0,
    max_memory_mb: Annotated[int, typer.Option(help="memory of this process for stream and queues, MiB")] = 1024,
    sentinel_horizon: Annotated[str, typer.Option(help="distance from the last event to the sentinel")] = "1d",
    rate: Annotated[float | None, typer.Option(help="open one trial at once, at this rate in events/s")] = None,
    seconds: Annotated[float | None, typer.Option(help="length of that trial, s")] = None,
    attempt: Annotated[str, typer.Option(help="name of that trial")] = "by-hand",
    cpus: Annotated[str | None, typer.Option(help="pin the process to these CPUs, separated by commas")] = None,
    certificate: Annotated[str | None, typer.Option(help="PEM file of a certificate: speak TLS")] = None,
    key: Annotated[str | None, typer.Option(help="its private key, if that is in a file of its own")] = None,
    is_open: Annotated[
        bool, typer.Option("--open", help="listen on an address beyond this host without a token")
    ] = False,
) -> None:
    """Start one driver process by hand, on this or another host, and print its address as one JSON line.

    Clients must know the token in the environment variable STREAMGAUGE_TOKEN, if it is set.
    """
    from streamgauge import config
    from streamgauge.bench.driver import process
    from streamgauge.bench.driver.serving import Serving

    given: dict[str, object] = {"mode": mode, "profile": profile, "partitions": partitions, "densify": densify}
    given |= {"queue_seconds": queue_seconds, "max_memory_mb": max_memory_mb, "share": share}
    given |= {"salted": salt or [], "line": line, "partition_by": partition_by}
    if columns is not None:
        given["columns"] = {name: "" for name in columns.split(",") if name}
    serving = config.parse(Serving, given, "streamgauge driver")
    process.run(process.Settings(
        stream=stream, store=store, serving=serving, host=host, port=port, sentinel_horizon=sentinel_horizon, rate=rate,
        seconds=seconds, attempt=attempt, cpus=cpus, certificate=certificate, key=key, open=is_open,
    ))  # fmt: skip
