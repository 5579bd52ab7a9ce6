"""Lists the code, programs, hosts and variables that a benchmark file names, and tries none of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from streamgauge.bench.measurements import MEASUREMENTS
from streamgauge.config.benchmark import Benchmark
from streamgauge.config.measuring import VERDICTS
from streamgauge.config.metrics import SINKS, MetricsSink
from streamgauge.config.nightly import Nightly, Webhook
from streamgauge.config.source import Source
from streamgauge.config.systems import Reached

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
    for address in benchmark.replay.remote:
        yield Reached("host", "replay.remote", address)
    if benchmark.replay.token_variable:
        yield Reached("variable", "replay.token_variable", benchmark.replay.token_variable)
    for number, sink in enumerate(benchmark.metrics.sinks if benchmark.metrics else ()):
        yield from _sink(f"metrics.sinks.{number}", sink)
    if benchmark.nightly:
        yield from _nightly(benchmark.nightly)


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
        for name in names:
            yield from _store(f"source.{key}", name)
    if source.own_code:
        yield Reached("code", "source.format", source.own_code)


def _store(key: str, name: str) -> Iterator[Reached]:
    if is_remote(name):
        yield Reached("host", key, _address(name))


def _sink(where: str, sink: MetricsSink) -> Iterator[Reached]:
    if code := SINKS.outside(sink.type):
        yield Reached("code", f"{where}.type", code)
    if sink.url:
        yield Reached("host", f"{where}.url", _address(sink.url))
    if sink.host:
        yield Reached("host", f"{where}.host", f"{sink.host}:{sink.port}")
    for variable in sink.headers_from_env.values():
        yield Reached("variable", f"{where}.headers_from_env", variable)


def _nightly(nightly: Nightly) -> Iterator[Reached]:
    for key, hook in (("webhook", nightly.webhook), ("heartbeat", nightly.heartbeat)):
        if hook is not None:
            yield from _webhook(f"nightly.{key}", hook)
    if nightly.apprise_variable:
        yield Reached("variable", "nightly.apprise_variable", nightly.apprise_variable)
    for notifier in nightly.notifiers:
        yield Reached("code", "nightly.notifiers", notifier.notifier)


def _webhook(where: str, hook: Webhook) -> Iterator[Reached]:
    if hook.url:
        yield Reached("host", f"{where}.url", _address(hook.url))
    for variable in filter(None, (hook.url_variable, *hook.headers_from_env.values())):
        yield Reached("variable", where, variable)


def _address(url: str) -> str:
    """Scheme, host and port of a URL: what else is in it may be a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
