"""Ends process sessions when whoever started them has died, in whatever way, and removes their control groups.

It runs as a program with few imports. Each line of standard input is `+` or `-`, and what to guard, or to guard no
longer: the id of a session, or the directory of a control group. The end of the input, which the kernel makes when the
other side dies, ends all that are left.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

#: seconds that processes have to end by themselves, and that a killed one takes to vanish
GRACE_S, KILLED_S = 8.0, 2.0
LOOK_S = 0.1


def members(sessions: set[int]) -> list[int]:
    """Ids of the running processes of these sessions; where there is no /proc, of their leaders."""
    proc = Path("/proc/self/stat").exists()
    running = []
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()) if proc else sessions:
        with suppress(OSError):
            if os.getsid(pid) in sessions and not (proc and _is_dead(pid)):
                running.append(pid)
    return running


def _is_dead(pid: int) -> bool:
    """True for a process that waits to be reaped; its name, which may hold blanks, ends at the last parenthesis."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].startswith("Z")


def remove(folder: str) -> bool:
    """Removes the directory of a control group and those below it, unless something runs there; False if one stays."""
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            os.rmdir(path)
    return not os.path.exists(folder)


def main() -> None:
    guarded: set[str] = set()
    for line in sys.stdin:
        (guarded.add if line[0] == "+" else guarded.discard)(line[1:].rstrip("\n"))
    sessions = {int(one) for one in guarded if one.isdigit()}
    for number, seconds in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, KILLED_S), (signal.SIGKILL, KILLED_S)):
        deadline = time.monotonic() + seconds
        for pid in members(sessions):
            with suppress(OSError):
                os.kill(pid, number)
        while members(sessions) and time.monotonic() < deadline:
            time.sleep(LOOK_S)
    folders = {one for one in guarded if not one.isdigit()}
    deadline = time.monotonic() + KILLED_S
    while folders and time.monotonic() < deadline:
        folders = {one for one in folders if not remove(one)}
        time.sleep(LOOK_S if folders else 0.0)


if __name__ == "__main__":
    main()
