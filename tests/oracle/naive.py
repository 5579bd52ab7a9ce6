"""Definitions 3 and 4 of the design in plain Python: quadratic where that is clearest."""

from __future__ import annotations


def out_of_order(times: list[int]) -> list[bool]:
    """An event is out of order iff an earlier one has a larger event time."""
    return [any(before > time for before in times[:i]) for i, time in enumerate(times)]


def delay_of(times: list[int]) -> list[int]:
    """Running maximum before the event − its time, of out-of-order events."""
    return [max(times[:i]) - t for i, t in enumerate(times) if i and max(times[:i]) > t]


def inversions(times: list[int]) -> list[tuple[int, int]]:
    return [(i, j) for j in range(len(times)) for i in range(j) if times[i] > times[j]]


def longest_strictly_decreasing(times: list[int]) -> int:
    best: list[int] = []
    for i, time in enumerate(times):
        best.append(1 + max((best[j] for j in range(i) if times[j] > time), default=0))
    return max(best, default=0)


def stream_order(ingestion: list[int], seq: list[int], times: list[int]) -> list[int]:
    """Event times as a system under test would see them."""
    return [time for _, _, time in sorted(zip(ingestion, seq, times, strict=True))]


def bases(times: list[int]) -> list[int]:
    return [max(times[: i + 1]) for i in range(len(times))]


def pinned(times: list[int]) -> list[bool]:
    """Directly followed by a source-out-of-order event."""
    late = out_of_order(times)
    return [i + 1 < len(times) and late[i + 1] for i in range(len(times))]
