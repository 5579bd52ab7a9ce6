"""Tells what a benchmark file reaches beyond itself, before anything of it is tried."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict

import typer

from streamgauge.base.printing import printable
from streamgauge.config import Benchmark
from streamgauge.config.reached import reached

_WORDS = {
    "code": "runs the code", "program": "starts", "host": "connects to", "variable": "reads the variable",
    "secret": "shows every user of this host",
}  # fmt: skip


def lines(benchmark: Benchmark) -> Iterator[str]:
    """Yields a line for each piece of code, program, host and variable that the file names."""
    for one in reached(benchmark):
        unset = ", not set here" if one.kind == "variable" and one.name not in os.environ else ""
        yield printable(f"{_WORDS[one.kind]} {one.name}{unset}  ({one.key})")


def facts(benchmark: Benchmark) -> list[dict[str, object]]:
    """Facts that `lines` tells, as JSON; `set` says of a variable whether it is there, and never its value."""
    return [
        asdict(one) | ({"set": one.name in os.environ} if one.kind == "variable" else {}) for one in reached(benchmark)
    ]


def announce(benchmark: Benchmark) -> None:
    """Prints these lines on standard error, where they stand before whatever the command does with them."""
    for line in lines(benchmark):
        typer.echo(f"{benchmark.name}: {line}", err=True)
