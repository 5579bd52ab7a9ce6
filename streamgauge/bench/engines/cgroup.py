"""Control groups for the processes of one session: one counts the CPU time of all that were ever in it, one limits it.

Each is a child of the group that the session's leader is in, so that all limits set there still apply.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from streamgauge.base.cgroups import group_of
from streamgauge.base.errors import UserError
from streamgauge.base.processes import guard_folder

_NAME = "streamgauge"
#: time after which a quota is granted anew, as in containers
PERIOD_US = 100_000
#: seconds after which a group that is to be removed is left to a later session
REMOVE_S = 2.0


class Group:
    """A group that counts (cgroup v2)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, leader: int) -> Self | None:
        """Makes an empty group; None without cgroup v2, without the right to, or if it would change scheduling."""
        parent = group_of(leader)
        if parent is None or leader == os.getpid():  # a process cannot remove the group that it is in
            return None
        try:
            if (parent / "cgroup.subtree_control").read_text().strip():
                return None  # its controllers would weigh the session as one unit against the parent's others
            group = cls.below(parent, leader)
        except OSError:
            return None
        if group.cpu_seconds() is None:
            group.remove()
            return None
        return group

    @classmethod
    def below(cls, parent: Path, leader: int) -> Self:
        """Makes a group there, after those are removed whose owners have died. Raises OSError."""
        _sweep(parent)
        path = parent / f"{_NAME}-{os.getpid()}-{leader}"
        path.mkdir()
        guard_folder(path, begins=True)
        return cls(path)

    def add(self, pid: int) -> bool:
        """Moves a process with all its threads, and so what it will start, into the group; False if that fails."""
        try:
            (self.path / "cgroup.procs").write_text(str(pid))
        except OSError:
            return False
        return True

    def pids(self) -> set[int]:
        try:
            return set(map(int, (self.path / "cgroup.procs").read_text().split()))
        except (OSError, ValueError):
            return set()

    def cpu_seconds(self) -> float | None:
        """User and system time since the first process was added, seconds; None if the group no longer exists."""
        try:
            usage = re.search(r"^usage_usec (\d+)$", (self.path / "cpu.stat").read_text(), re.MULTILINE)
        except OSError:
            return None
        return int(usage[1]) / 1e6 if usage else None

    def remove(self, patience_s: float = 0.0) -> None:
        """Removes the group once nothing runs in it; otherwise a later session on this host does."""
        deadline = time.monotonic() + patience_s
        while True:
            for path in (*sorted(self.path.rglob("*/"), reverse=True), self.path):  # nested sessions have groups too
                with suppress(OSError):
                    path.rmdir()
            if not self.path.exists() or time.monotonic() >= deadline:
                break
            time.sleep(0.02)
        if not self.path.exists():
            guard_folder(self.path, begins=False)


class Quota(Group):
    """A group that gets the time of so many CPUs (the controller cpu of cgroup v1 or v2), which may change."""

    @classmethod
    def made(cls, leader: int) -> Self:
        """Makes an empty group without a limit. Raises UserError, one line, where this machine offers none."""
        parent = quota_parent()
        try:
            group = cls.below(parent, leader)
            group._weigh()
            group.give(None)
        except OSError as problem:
            raise UserError(f"no group with a quota can be made in {parent}: {problem.strerror}") from None
        return group

    def give(self, cpus: float | None) -> None:
        """Gives its processes together the time of so many CPUs from now on; None: all. Raises OSError."""
        quota_us = None if cpus is None else round(cpus * PERIOD_US)
        if (first := self.path / "cpu.cfs_quota_us").exists():  # cgroup v1
            (self.path / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            first.write_text(str(-1 if quota_us is None else quota_us))
        else:
            (self.path / "cpu.max").write_text(f"{'max' if quota_us is None else quota_us} {PERIOD_US}")

    def _weigh(self) -> None:
        """Lets the group weigh as much as an ordinary thread on each CPU: by default it weighs as one thread on all."""
        for name, usual, most in (("cpu.shares", 1024, 262_144), ("cpu.weight", 100, 10_000)):  # the kernel's limits
            if (self.path / name).exists():
                (self.path / name).write_text(str(min(most, usual * (os.cpu_count() or 1))))


def quota_parent() -> Path:
    """Directory in which a group with a quota can be made. Raises UserError, one line, where there is none.

    In cgroup v2, a group with processes gives its children no controllers. Where it has no limit of its own, the group
    above it serves as well.
    """
    first, second = group_of(controller="cpu"), group_of()
    if first is None and second is None:
        raise UserError("this machine offers no quota of CPU time: neither cgroup v1 nor v2 has its controller cpu")
    places = [first] if first else _with_cpu(second)
    if not places:
        raise UserError(
            f"this machine offers no quota of CPU time: {second} hands the controller cpu to no group below it "
            "(cgroup.subtree_control), and neither does the one above it"
        )
    if not os.access(places[0], os.W_OK) or (os.statvfs(places[0]).f_flag & os.ST_RDONLY):
        raise UserError(f"this machine offers no quota of CPU time: {places[0]} may not be written to")
    return places[0]


def _with_cpu(own: Path | None) -> list[Path]:
    """The group itself and the one above it, as far as they hand the controller cpu on."""
    if own is None:
        return []
    above = [own.parent] if _text(own / "cpu.max").startswith("max") else []
    return [one for one in (own, *above) if "cpu" in _text(one / "cgroup.subtree_control").split()]


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def _sweep(parent: Path) -> None:
    """Removes groups whose owners have died."""
    for path in parent.glob(f"{_NAME}-*-*"):
        owner = path.name.split("-")[1]
        if not Path("/proc", owner).exists():
            Group(path).remove()
