"""Sends metrics by Graphite's plaintext protocol: one line `path value timestamp` for each value, over TCP.

path: prefix.pipeline.step.type.namespace.name.attempted|committed.value|count|sum|min|max|mean
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

from streamgauge.config import MetricsSink
from streamgauge.metrics.sinks import in_ascii
from streamgauge.metrics.snapshot import Snapshot

NS = 1_000_000_000
_NOT_PATH = re.compile(r"[^A-Za-z0-9_-]+")


class GraphiteSink:
    """Opens a connection for each push. Graphite never answers, but it closes when it has read to the end."""

    def __init__(self, settings: MetricsSink) -> None:
        assert settings.host is not None
        self._address = settings.host, settings.port
        self._prefix, self._timeout = settings.prefix, settings.timeout.seconds
        self.name = f"graphite {settings.host}"

    def write(self, snapshot: Snapshot) -> None:
        text = "".join(lines(snapshot, self._prefix))
        with socket.create_connection(self._address, self._timeout) as wire:
            wire.sendall(text.encode())
            wire.shutdown(socket.SHUT_WR)
            while wire.recv(1024):
                pass

    def close(self) -> None: ...


def lines(snapshot: Snapshot, prefix: str) -> Iterator[str]:
    """Yields the lines. A gauge has the time at which it was set, everything else that of the snapshot."""
    for metric in snapshot.metrics:
        parts = (snapshot.pipeline, metric.step, metric.kind, metric.namespace, metric.name)
        path = ".".join([prefix, *(in_ascii(part, _NOT_PATH) for part in parts)])
        for state, figures in (("attempted", metric.attempted), ("committed", metric.committed)):
            values = dict(figures or {})
            at_s = values.pop("timestamp_ns", snapshot.at_ns) // NS
            for what, value in values.items():
                if value is not None:
                    yield f"{path}.{state}.{what} {value} {at_s}\n"
