"""The side of a child process (base/processes.py has the other): runs its task, and ends with its parent."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.client import WireError


def pin(cpus: str | None) -> None:
    """Binds this process to CPUs such as '0,2'. Raises UserError where that is impossible."""
    if not cpus:
        return
    try:
        os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    except (ValueError, OSError) as problem:
        allowed = sorted(os.sched_getaffinity(0))
        raise UserError(f"--cpus: found {cpus!r} ({problem}), allowed: some of {allowed}") from None


def end_with_parent(done: threading.Event) -> None:
    """Sets `done` when standard input closes, which happens in whatever way the parent process dies."""
    while os.read(0, 4096):
        pass
    done.set()


def run_task(work: Callable[[dict[str, Any], threading.Event], Mapping[str, object]]) -> int:
    """Gives `work` its task, the first line of standard input, and prints the figures that it returns; both are JSON.

    The event is set when standard input closes. Returns the exit code: 2, with the problem as a line, if it fails.
    """
    task, stop = json.loads(sys.stdin.readline()), threading.Event()
    threading.Thread(target=end_with_parent, args=(stop,), daemon=True).start()
    try:
        figures = work(task, stop)
    except (UserError, WireError) as problem:
        print(problem, file=sys.stderr)
        return 2
    print(json.dumps(figures))
    return 0
