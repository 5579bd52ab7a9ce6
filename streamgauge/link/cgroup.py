"""A control group (v2) for the processes of one session: the kernel counts the CPU of all that ever were in it."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

_NAME = "streamgauge"


class Group:
    """A group below the one that the process is in, so that it stays under all limits that are set there."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def create(cls, leader: int) -> Group | None:
        """A new, empty group; None where there is no cgroup v2, no right to make one, or it would change scheduling."""
        parent = _of(leader)
        if parent is None or leader == os.getpid():  # nobody could remove the group that he is in
            return None
        try:
            if (parent / "cgroup.subtree_control").read_text().strip():
                return None  # its controllers would treat the session as one, against all others in the parent
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
        """Moves a process with all its threads; what it starts from now on is in the group too."""
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
        """User and system time since the first was added; None when the group is no more."""
        try:
            found = re.search(r"^usage_usec (\d+)$", (self._path / "cpu.stat").read_text(), re.MULTILINE)
        except OSError:
            return None
        return int(found[1]) / 1e6 if found else None

    def remove(self) -> None:
        """Removes it where nothing runs in it; otherwise the next session of this host does."""
        for path in (*sorted(self._path.rglob("*/"), reverse=True), self._path):  # a session in a session has one too
            with suppress(OSError):
                path.rmdir()


def _of(pid: int) -> Path | None:
    """The directory of a process's group."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text()
        groups = Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return None
    mount = re.search(r"^\d+ \d+ \S+ / (\S+) .* - cgroup2 ", mounts, re.MULTILINE)
    group = re.search(r"^0::/(.*)$", groups, re.MULTILINE)
    return Path(mount[1]) / group[1] if mount and group else None


def _sweep(parent: Path) -> None:
    """Removes what dead owners left behind."""
    for path in parent.glob(f"{_NAME}-*-*"):
        owner = path.name.split("-")[1]
        if not Path("/proc", owner).exists():
            Group(path).remove()
