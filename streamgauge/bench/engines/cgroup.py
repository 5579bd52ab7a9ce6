"""A control group (v2) for the processes of one session: the kernel counts the CPU time of all that were ever in it."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

_NAME = "streamgauge"


class Group:
    """A child of the group that the session's leader is in, so that all limits set there still apply."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def create(cls, leader: int) -> Group | None:
        """Makes an empty group; None without cgroup v2, without the right to, or if it would change scheduling."""
        parent = _of(leader)
        if parent is None or leader == os.getpid():  # a process cannot remove the group that it is in
            return None
        try:
            if (parent / "cgroup.subtree_control").read_text().strip():
                return None  # its controllers would weigh the session as one unit against the parent's others
            _sweep(parent)
            path = parent / f"{_NAME}-{os.getpid()}-{leader}"
            path.mkdir()
        except OSError:
            return None
        group = cls(path)
        if group.cpu_seconds() is None:
            group.remove()
            return None
        return group

    def add(self, pid: int) -> bool:
        """Moves a process with all its threads, and so what it will start, into the group; False if that fails."""
        try:
            (self._path / "cgroup.procs").write_text(str(pid))
        except OSError:
            return False
        return True

    def pids(self) -> set[int]:
        try:
            return set(map(int, (self._path / "cgroup.procs").read_text().split()))
        except (OSError, ValueError):
            return set()

    def cpu_seconds(self) -> float | None:
        """User and system time since the first process was added, seconds; None if the group no longer exists."""
        try:
            usage = re.search(r"^usage_usec (\d+)$", (self._path / "cpu.stat").read_text(), re.MULTILINE)
        except OSError:
            return None
        return int(usage[1]) / 1e6 if usage else None

    def remove(self) -> None:
        """Removes the group if nothing runs in it; otherwise a later session on this host does."""
        for path in (*sorted(self._path.rglob("*/"), reverse=True), self._path):  # nested sessions have groups too
            with suppress(OSError):
                path.rmdir()


def _of(pid: int) -> Path | None:
    """Directory of a process's group; None without cgroup v2."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
        groups = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8")
    except OSError:
        return None
    mount = re.search(r"^\d+ \d+ \S+ / (\S+) .* - cgroup2 ", mounts, re.MULTILINE)
    group = re.search(r"^0::/(.*)$", groups, re.MULTILINE)
    return Path(mount[1]) / group[1] if mount and group else None


def _sweep(parent: Path) -> None:
    """Removes groups whose owners have died."""
    for path in parent.glob(f"{_NAME}-*-*"):
        owner = path.name.split("-")[1]
        if not Path("/proc", owner).exists():
            Group(path).remove()
