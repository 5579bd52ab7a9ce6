"""The CPU time of processes that come and go, from looks at those which are there.

A process's own time is read from /proc while it lives. When its parent reaps it, the kernel adds all of that, and what it
had reaped itself, to the parent's children's time. Of a rise of that time counts only what was not seen before at the
children that have just gone: so nothing counts twice, the last moments of a child are not lost, and neither is a child
that came and went between two looks. Lost is the end of a process that nobody of ours reaps, from the last look at it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
#: user and system time are cut to whole ticks each, so that a rise of both can look as much larger or smaller
ROUNDING_TICKS = 2


@dataclass(frozen=True)
class Reading:
    """What /proc/<pid>/stat says of a process."""

    pid: int
    parent: int
    session: int
    started_ticks: int
    own_ticks: int
    reaped_ticks: int
    rss_bytes: int = 0
    ended: bool = False  # a zombie: its times stand, nobody has reaped it yet

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
    """None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return Reading.of(stat.read())
    except OSError:
        return None


@dataclass
class _Known:
    """A process at the last look, and what its children's time may still rise by without telling anything new."""

    parent: int
    own_ticks: int = 0
    reaped_ticks: int = 0
    rise_ticks: int = 0
    owed_ticks: int = 0


class Account:
    """The sum, in clock ticks; it never falls. Not for several threads."""

    def __init__(self) -> None:
        self.ticks = 0
        self._known: dict[tuple[int, int], _Known] = {}  # by number and start: numbers are used again

    @property
    def seconds(self) -> float:
        return self.ticks / TICKS_PER_S

    @property
    def known(self) -> set[tuple[int, int]]:
        """Number and start of those that were there at the last look."""
        return set(self._known)

    def glance(self, readings: Iterable[Reading]) -> None:
        """Takes the own time of processes that a look has found before."""
        for reading in readings:
            known = self._known.get((reading.pid, reading.started_ticks))
            if known is not None:
                self._take_own(known, reading)

    def look(self, readings: Collection[Reading], gone: Collection[int] = ()) -> None:
        """Takes a reading of every process that was there; `gone` are those that had left when all were read.

        A child that is still there after its parent was read cannot be part of what the parent had reaped.
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
        """Takes what was reaped beyond what is known of the ended children; all that its own parent will be given."""
        fresh = sum(self._settle(child, ended.pop(child), ended, children) for child in children[pid] if child in ended)
        owed = fresh + known.owed_ticks
        self.ticks += max(0, known.rise_ticks - owed)
        left = max(0, owed - known.rise_ticks)
        known.rise_ticks = 0
        # a child may have gone after its parent was read: the next look has it. Later ones do not: nobody reaped it
        known.owed_ticks = min(left, fresh + ROUNDING_TICKS)
        return known.own_ticks + known.reaped_ticks + left
