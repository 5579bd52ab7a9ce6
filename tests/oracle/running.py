"""The running maximum in plain Python, one event after the other: as fast as a loop, and as plain."""

from __future__ import annotations

from collections.abc import Iterable


def delays(times: Iterable[int]) -> list[int]:
    """Running maximum before the event − its time, of out-of-order events, in their order."""
    found = []
    largest: int | None = None
    for time in times:
        if largest is not None and time < largest:
            found.append(largest - time)
        else:
            largest = time
    return found


def late(times: Iterable[int]) -> int:
    return len(delays(times))
