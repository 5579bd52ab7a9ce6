"""Finds the control groups of processes, of cgroup v1 and v2, and the memory that they may use."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def group_of(pid: int | str = "self", controller: str = "") -> Path | None:
    """Directory of a process's group for a controller of cgroup v1; without a controller, that of v2. None if none."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
        groups = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8")
    except OSError:
        return None
    return directory(mounts, groups, controller)


def directory(mounts: str, groups: str, controller: str = "") -> Path | None:
    """Returns what `group_of` does, from the texts of /proc/self/mountinfo and /proc/PID/cgroup."""
    inside = None
    for line in groups.splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            inside = path
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, place = before.split()[3:5]
        kind, _, options = after.split(" ", 2)
        matches = kind == "cgroup" and controller in options.split(",") if controller else kind == "cgroup2"
        below = root.rstrip("/")  # a container may see a part of the tree alone
        if matches and inside is not None and f"{inside}/".startswith(f"{below}/"):
            return Path(place + inside[len(below) :])
    return None


def memory_limit() -> int | None:
    """Bytes that this process's groups, or those above them, let it use; None without a limit."""
    limits: list[int] = []
    for controller, name in (("", "memory.max"), ("memory", "memory.limit_in_bytes")):
        own = group_of(controller=controller)
        for folder in (own, *own.parents) if own else ():
            with suppress(OSError, ValueError):  # above the mount there is none, and "max" is no limit
                limits.append(int((folder / name).read_text()))
    return min(limits, default=None)
