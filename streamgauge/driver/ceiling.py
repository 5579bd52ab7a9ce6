"""The driver's own ceiling: what it delivers to a consumer that reads and discards, without any system."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass

from streamgauge.driver.client import Connection, WireError
from streamgauge.driver.fleet import Fleet
from streamgauge.driver.schedule import NS
from streamgauge.errors import UserError

OVERLOAD = 1e8  # events/s offered: more than any driver delivers; full queues hold the rest back


@dataclass(frozen=True)
class Ceiling:
    """Measured together with a consumer in this process; a rate near it measures the driver."""

    events_per_s: float
    driver_cpu_us_per_event: float
    consumer_cpu_us_per_event: float
    seconds: float
    processes: int


def ceiling(fleet: Fleet, seconds: float = 3.0) -> Ceiling:
    """Reads as fast as it can for so long, each endpoint in a thread. Raises UserError when a driver leaves."""
    attempt = f"ceiling-{uuid.uuid4().hex[:8]}"
    counts = [0] * len(fleet.endpoints)
    failures: list[WireError] = []
    try:
        control = [Connection(endpoint) for endpoint in fleet.endpoints]
        for connection in control:
            connection.open(attempt, OVERLOAD, seconds + 60, hold=True)
        start = max(connection.start() for connection in control)
        time.sleep(max(0, start - time.time_ns()) / NS)
        begin, cpu = time.monotonic(), time.process_time()
        driver_cpu = [connection.status()["cpu_seconds"] for connection in control]

        def consume(number: int) -> None:
            try:
                counts[number] = _discard(Connection(fleet.endpoints[number], attempt), begin + seconds)
            except WireError as problem:
                failures.append(problem)

        threads = [threading.Thread(target=consume, args=(i,), daemon=True) for i in range(len(counts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 60)
        took, cpu = time.monotonic() - begin, time.process_time() - cpu
        used = sum(c.status()["cpu_seconds"] - before for c, before in zip(control, driver_cpu, strict=True))
        for connection in control:
            connection.stop()
            connection.close()
    except WireError as problem:
        failures.append(problem)
    if failures or not sum(counts):
        raise UserError(f"driver self-test: {fleet.dead() or (failures and failures[0]) or 'no event came'}")
    events = sum(counts)
    return Ceiling(events / took, used / events * 1e6, cpu / events * 1e6, took, len(counts))


def _discard(connection: Connection, until: float) -> int:
    position = [0] * connection.partitions
    with connection:
        while time.monotonic() < until:
            for partition, at in enumerate(position):
                rows = sum(batch.num_rows for batch in connection.read(partition, at, wait_s=0.05))
                position[partition] = at + rows
                connection.commit({partition: at + rows})
    return sum(position)
