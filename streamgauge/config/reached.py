"""Lists the code, programs, hosts and variables that a benchmark file names, and tries none of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from streamgauge.base import variables
from streamgauge.base.field_types import Model
from streamgauge.base.reached import Reached
from streamgauge.bench.measurements import MEASUREMENTS
from streamgauge.config.benchmark import Benchmark
from streamgauge.config.measuring import VERDICTS
from streamgauge.config.metrics import SINKS
from streamgauge.descriptions.kafka_security import TOKEN_HOST
from streamgauge.descriptions.source import Source

_REMOTE = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+:/+.")


def is_remote(name: str) -> bool:
    """True for a name on a store such as s3:// rather than on this machine."""
    return _REMOTE.match(name) is not None


def reached(benchmark: Benchmark) -> tuple[Reached, ...]:
    """Lists what a run of the file would import, start, connect to, or read from the environment, in its order."""
    return tuple(dict.fromkeys(_all(benchmark)))


def without_own(benchmark: Benchmark) -> Benchmark:
    """The benchmark without experiments and workloads that depend on code that the file names, and their cells."""
    experiments = tuple(one for one in benchmark.experiments if one.delay.own_code is None)
    names = {one.name for one in experiments}
    queries = {one.name for one in benchmark.workloads if one.own_code is None}
    cells = tuple(one for one in benchmark.all_cells() if one.experiment in names and one.workload in queries)
    return benchmark.model_copy(update={"experiments": experiments, "cells": cells})


def _all(benchmark: Benchmark) -> Iterator[Reached]:
    yield from _source(benchmark.source)
    yield from _own_code(benchmark)
    for system in benchmark.systems:
        for one in system.reached():
            yield Reached(one.kind, f"systems.{system.name}.{one.key}", one.name)
    if code := VERDICTS.outside(benchmark.search.verdict):
        yield Reached("code", "search.verdict", code)
    if benchmark.gate and benchmark.gate.build:
        yield Reached("program", "gate.build", benchmark.gate.build)
    for address in benchmark.replay.remote:
        yield Reached("host", "replay.remote", address)
    yield from _below("replay", benchmark.replay)
    for number, sink in enumerate(benchmark.metrics.sinks if benchmark.metrics else ()):
        if code := SINKS.outside(sink.type):
            yield Reached("code", f"metrics.sinks.{number}.type", code)
        if sink.host:
            yield Reached("host", f"metrics.sinks.{number}.host", f"{sink.host}:{sink.port}")
    yield from _below("metrics", benchmark.metrics)
    yield from _below("nightly", benchmark.nightly)
    for notifier in benchmark.nightly.notifiers if benchmark.nightly else ():
        yield Reached("code", "nightly.notifiers", notifier.notifier)


def _below(where: str, group: object) -> Iterator[Reached]:
    """Yields what those keys of a group name that have one meaning everywhere: url, …_variable and headers_from_env."""
    if isinstance(group, tuple):
        for number, one in enumerate(group):
            yield from _below(f"{where}.{number}", one)
    if not isinstance(group, Model):
        return
    for key, value in group:
        if key == "url" and value:
            yield Reached("host", f"{where}.url", _address(value))
            yield from (Reached("variable", f"{where}.url", name) for name in variables.named(value))
        elif key in ("options", "arguments"):
            yield from (Reached("variable", f"{where}.{key}", name) for name in variables.named(str(value)))
        elif key.endswith("_variable") and value:
            yield Reached("variable", f"{where}.{key}", value)
        elif key == "headers_from_env":
            yield from (Reached("variable", f"{where}.{key}", variable) for variable in value.values())
        else:
            yield from _below(f"{where}.{key}", value)


def _own_code(benchmark: Benchmark) -> Iterator[Reached]:
    for experiment in benchmark.experiments:
        if code := experiment.delay.own_code:
            yield Reached("code", f"experiments.{experiment.name}.delay.distribution", code)
    for workload in benchmark.workloads:
        if code := workload.own_code:
            yield Reached("code", f"workloads.{workload.name}.query", code)
    for name in benchmark.sections:
        if code := MEASUREMENTS.outside(name):
            yield Reached("code", name, code)


def _source(source: Source) -> Iterator[Reached]:
    for key, names in (("files", source.files), ("expectations", source.expectations)):
        yield from (Reached("host", f"source.{key}", _address(name)) for name in names if is_remote(name))
    if source.kafka is not None:
        yield Reached("host", "source.kafka.bootstrap", source.kafka.bootstrap)
        settings = source.kafka.security
        if TOKEN_HOST in settings:
            yield Reached("host", f"source.kafka.security.{TOKEN_HOST}", settings[TOKEN_HOST])
        yield from (Reached("variable", "source.kafka.security", name) for name in variables.named(str(settings)))
    if source.own_code:
        yield Reached("code", "source.format", source.own_code)
    for one in source.kafka.registry.reached() if source.kafka and source.kafka.registry else ():
        yield Reached(one.kind, f"source.kafka.{one.key}", one.name)


def _address(url: str) -> str:
    """Scheme, host and port of a URL: what else is in it may be a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
