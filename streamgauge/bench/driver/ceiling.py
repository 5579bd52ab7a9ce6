"""Measures the driver's own ceiling: what it delivers to a consumer that reads and discards, without any system."""

from __future__ import annotations

import threading
import time
import uuid

from streamgauge.base.errors import Outage, UserError
from streamgauge.bench.driver.client import Connection, RefusedError, WireError
from streamgauge.bench.driver.fleet import Drivers
from streamgauge.bench.driver.system import Endpoint
from streamgauge.records.measurement import Ceiling

OVERLOAD = 1e8  # events/s offered: more than any driver delivers; the closed loop holds the rest back
LONGEST_S = 60.0
HELD_ROWS = 1_000_000


def ceiling(fleet: Drivers, seconds: float = 1.0) -> Ceiling:
    """Reads from all endpoints as fast as possible for `seconds`, one thread each.

    Raises Outage when a driver leaves, UserError when it refuses.
    """
    attempt = f"ceiling-{uuid.uuid4().hex[:8]}"
    delivered: list[Ceiling] = []
    failures: list[WireError] = []

    def consume(endpoint: Endpoint) -> None:
        try:
            with Connection(endpoint) as control:
                control.open(attempt, OVERLOAD, seconds + 2 * LONGEST_S, hold=HELD_ROWS)
                control.start()
                delivered.append(_consume(control, seconds))
                control.stop()
        except WireError as problem:
            failures.append(problem)

    threads = [threading.Thread(target=consume, args=(endpoint,), daemon=True) for endpoint in fleet.endpoints]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 2 * LONGEST_S)
    if failures or len(delivered) < len(threads):
        refused = [problem for problem in failures if isinstance(problem, RefusedError)]
        if refused and fleet.dead() is None:
            raise UserError(f"driver self-test: {refused[0]}")
        raise Outage(f"driver self-test: {_dead(fleet) or (failures[0] if failures else 'it did not finish in time')}")
    total = sum(c.events_per_s for c in delivered)

    def mean(values: list[float]) -> float:
        return sum(v * c.events_per_s for v, c in zip(values, delivered, strict=True)) / total

    return Ceiling(
        total,
        mean([c.driver_cpu_us_per_event for c in delivered]),
        mean([c.consumer_cpu_us_per_event for c in delivered]),
        max(c.seconds for c in delivered),
        len(delivered),
    )


def _dead(fleet: Drivers) -> str | None:
    """Names a dead driver process, or None. Waits for up to a second: connections break before the death shows."""
    for _ in range(10):
        if dead := fleet.dead():
            return dead
        time.sleep(0.1)
    return None


def _consume(connection: Connection, seconds: float) -> Ceiling:
    """Measures one endpoint. Rows prepared before the first read do not count, so queues end as full as they began."""
    position = [0] * connection.partitions
    _discard(connection, position, rows=HELD_ROWS, seconds=LONGEST_S)
    before, begin, used = sum(position), time.monotonic(), time.thread_time()
    driver = connection.status()["cpu_seconds"]
    _discard(connection, position, rows=None, seconds=seconds)
    took, used = time.monotonic() - begin, time.thread_time() - used
    driver = connection.status()["cpu_seconds"] - driver
    events = max(1, sum(position) - before)
    return Ceiling(events / took, driver / events * 1e6, used / events * 1e6, took, 1)


def _discard(connection: Connection, position: list[int], *, rows: int | None, seconds: float) -> None:
    until = time.monotonic() + seconds
    wait_s = 0.0  # waits only when no partition had rows: small queues are often empty
    while time.monotonic() < until and (rows is None or sum(position) < rows):
        before = sum(position)
        for partition, at in enumerate(position):
            position[partition] += sum(batch.num_rows for batch in connection.read(partition, at, wait_s=wait_s))
            connection.commit({partition: position[partition]})
        wait_s = 0.0 if sum(position) > before else 0.005
