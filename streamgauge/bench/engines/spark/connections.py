"""Connections to driver processes, kept between the tasks of a reused Python worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from streamgauge.bench.driver.client import Connection, RefusedError, WireError, reached
from streamgauge.bench.driver.system import Endpoint
from streamgauge.bench.oracle.checksum import result_columns, salt

T = TypeVar("T")

#: (pid, endpoint) -> attempt and its connection; the pid, because a forked worker must not share a socket
_held: dict[tuple[int, Endpoint], tuple[str, Connection]] = {}
#: (pid, endpoint) -> attempt, and how far the driver's clock was from this host's (see `clock_offset`)
_clocks: dict[tuple[int, Endpoint], tuple[str, tuple[int, int]]] = {}


def endpoints_of(options: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Reads endpoints from the options that `options_of` makes. Raises ValueError."""
    token, cafile = options.get("token", ""), options.get("cafile") or None
    patience_s = float(options.get("patience_s") or Endpoint.patience_s)
    endpoints = []
    for address in options.get("endpoints", "").split(","):
        host, colon, port = address.strip().rpartition(":")
        if not colon or not port.isdigit():
            raise ValueError(f"option endpoints: found {address!r}, allowed: host:port,host:port")
        endpoints.append(Endpoint(host, int(port), token=token, cafile=cafile, patience_s=patience_s))
    return tuple(endpoints)


def options_of(endpoints: tuple[Endpoint, ...], attempt: str) -> dict[str, str]:
    """Options of the source and the sink: endpoints ("host:port,host:port") and what they share."""
    options = {
        "endpoints": ",".join(endpoint.address for endpoint in endpoints),
        "token": endpoints[0].token,
        "patience_s": str(endpoints[0].patience_s),
        "attempt": attempt,
    }
    return options | ({"cafile": endpoints[0].cafile} if endpoints[0].cafile else {})


def salts_of(columns: Sequence[str]) -> str:
    """Option `salts` of the sink in the JVM: name=salt of each result column, for the checksum."""
    return ",".join(f"{name}={salt(name)}" for name in result_columns(columns))


def connection(endpoint: Endpoint, attempt: str) -> Connection:
    """Returns this attempt's held connection, or a new one. Raises WireError."""
    key = (os.getpid(), endpoint)
    asked, held = _held.get(key, ("", None))
    if held is None or held.closed or asked != attempt:
        if held is not None:
            held.close()
        held = reached(endpoint, attempt, endpoint.patience_s)
        _held[key] = attempt, held
    return held


def once_more(endpoint: Endpoint, attempt: str, call: Callable[[Connection], T]) -> T:
    """Runs `call`, once more on a fresh connection if the held one turns out to be dead. Raises WireError."""
    wire = connection(endpoint, attempt)
    try:
        return call(wire)
    except RefusedError:
        raise
    except WireError:
        return call(connection(endpoint, attempt))


def clock_offset(endpoint: Endpoint, attempt: str) -> tuple[int, int] | None:
    """Returns (driver's clock − this host's, error bound) in ns, measured once per attempt; None if unreachable."""
    key = (os.getpid(), endpoint)
    asked, offset = _clocks.get(key, ("", None))
    if offset is None or asked != attempt:
        try:
            offset = once_more(endpoint, attempt, Connection.clock_offset)
        except WireError:
            return None
        _clocks[key] = attempt, offset
    return offset
