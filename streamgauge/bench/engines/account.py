"""Sums the CPU time of processes that come and go, from repeated readings of /proc, called looks.

A living process's own time is in /proc. When its parent reaps it, the kernel adds that time, and what the process had
reaped itself, to the parent's children's time. A rise of the children's time counts only as far as it was not already
counted for the children that have just gone. So nothing counts twice, and neither the last moments of a child nor a
child that came and went between two looks are lost. Lost is the end of a process that none of ours reaps, from the
last look at it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
#: user and system time are each cut to whole ticks, so a rise of both can look larger or smaller by this much
ROUNDING_TICKS = 2


@dataclass(frozen=True)
class Reading:
    """The figures of /proc/<pid>/stat."""

    pid: int
    parent: int
    session: int
    started_ticks: int
    own_ticks: int
    reaped_ticks: int
    rss_bytes: int = 0
    ended: bool = False  # a zombie: its times are final, and nobody has reaped it yet

    @classmethod
    def of(cls, stat: str) -> Reading:
        pid, _, rest = stat.partition(" (")
        fields = rest[rest.rindex(")") + 2 :].split()  # a name may hold blanks and brackets
        user, system, children_user, children_system = map(int, fields[11:15])
        return cls(
            pid=int(pid),
            parent=int(fields[1]),
            session=int(fields[3]),
            started_ticks=int(fields[19]),
            own_ticks=user + system,
            reaped_ticks=children_user + children_system,
            rss_bytes=int(fields[21]) * PAGE_BYTES,
            ended=fields[0] in "ZX" and int(fields[17]) <= 1,  # other threads may outlive the first
        )


def read(pid: int) -> Reading | None:
    """Reads the figures of a process; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return Reading.of(stat.read())
    except OSError:
        return None


@dataclass
class _Known:
    """A process at the last look. owed_ticks: how far its children's time may still rise by time that has counted."""

    parent: int
    own_ticks: int = 0
    reaped_ticks: int = 0
    rise_ticks: int = 0
    owed_ticks: int = 0


class Account:
    """The sum of CPU time in clock ticks, which never falls. Not thread-safe."""

    def __init__(self) -> None:
        self.ticks = 0
        self._known: dict[tuple[int, int], _Known] = {}  # by pid and start time: pids are reused

    @property
    def seconds(self) -> float:
        return self.ticks / TICKS_PER_S

    @property
    def known(self) -> set[tuple[int, int]]:
        """Pid and start time of the processes that the last look found."""
        return set(self._known)

    def glance(self, readings: Iterable[Reading]) -> None:
        """Adds the own time of processes that a look has found before."""
        for reading in readings:
            known = self._known.get((reading.pid, reading.started_ticks))
            if known is not None:
                self._take_own(known, reading)

    def look(self, readings: Collection[Reading], gone: Collection[int] = ()) -> None:
        """Adds what a reading of every process tells; gone: pids among them that had left when all were read.

        A child that still exists after its parent was read cannot be part of what the parent had reaped.
        """
        there = set()
        for reading in readings:
            key = reading.pid, reading.started_ticks
            known = self._known.setdefault(key, _Known(reading.parent))
            self._take_own(known, reading)
            known.parent = reading.parent
            known.rise_ticks = max(0, reading.reaped_ticks - known.reaped_ticks)
            known.reaped_ticks += known.rise_ticks
            if reading.pid not in gone:
                there.add(key)
        ended = {key[0]: known for key, known in self._known.items() if key not in there}
        self._known = {key: self._known[key] for key in there}
        children = defaultdict(list)
        for pid, known in ended.items():
            children[known.parent].append(pid)
        for key, known in self._known.items():
            self._settle(key[0], known, ended, children)
        for pid in [pid for pid, known in ended.items() if known.parent not in ended]:  # none of ours is its parent
            self._settle(pid, ended.pop(pid), ended, children)

    def _take_own(self, known: _Known, reading: Reading) -> None:
        rise = max(0, reading.own_ticks - known.own_ticks)
        known.own_ticks += rise
        self.ticks += rise

    def _settle(self, pid: int, known: _Known, ended: dict[int, _Known], children: dict[int, list[int]]) -> int:
        """Adds what a process reaped beyond its ended children's known time; returns all that its parent will get."""
        fresh = sum(self._settle(child, ended.pop(child), ended, children) for child in children[pid] if child in ended)
        owed = fresh + known.owed_ticks
        self.ticks += max(0, known.rise_ticks - owed)
        left = max(0, owed - known.rise_ticks)
        known.rise_ticks = 0
        # a child may have gone after its parent was read: the next look sees the rise; if not, nobody reaped it
        known.owed_ticks = min(left, fresh + ROUNDING_TICKS)
        return known.own_ticks + known.reaped_ticks + left
