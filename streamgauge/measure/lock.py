"""Lets one measurement at a time run on a host, with no process left over from an earlier one.

The lock is the operating system's, so it ends with its holder. Every holder has a higher fencing token than the one
before, and its children carry it in their environment. A new holder begins by killing every process that carries
another token of the lock.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import write_json

FENCE = "STREAMGAUGE_FENCE"
log = logging.getLogger("streamgauge")


@contextmanager
def measuring(what: str, *, patience_s: float = 3600.0, place: Path | None = None) -> Iterator[int]:
    """Holds the host's lock in a `with` block; yields the token. A holder of the same `what` is an orphan, and killed.

    Raises UserError when another measurement holds the lock for longer than patience_s.
    """
    place = place or Path(tempfile.gettempdir())
    state_file = place / f"streamgauge-{os.getuid()}.measuring.json"
    lock = FileLock(state_file.with_suffix(".lock"))
    _acquire(lock, state_file, what, patience_s)
    try:
        token = int(_read(state_file).get("token", 0)) + 1
        me = psutil.Process()
        write_json(state_file, {"token": token, "pid": me.pid, "started": me.create_time(), "what": what})
        ended = _end_others(state_file, token)
        if ended:
            log.info("ended %d processes that an earlier measurement left behind", ended)
        os.environ[FENCE] = f"{token}@{state_file}"
        yield token
    finally:
        os.environ.pop(FENCE, None)
        with contextlib.suppress(OSError):  # forgets `what`: whoever waits must not take us for an orphan
            write_json(state_file, {"token": _read(state_file).get("token", 0)})
        lock.release()


def _acquire(lock: FileLock, state_file: Path, what: str, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    told = False
    while True:
        with contextlib.suppress(Timeout):
            lock.acquire(timeout=2.0)
            return
        holder = _read(state_file)
        if holder.get("what") == what:
            _end_holder(holder)
        if time.monotonic() > deadline:
            raise UserError(
                f"measuring lock: {holder.get('what', 'another measurement')} (pid {holder.get('pid')}) has held it "
                f"for {patience_s:.0f} s; wait for it, or end that process"
            )
        if not told:
            log.info("waiting for %s (pid %s) to finish measuring", holder.get("what"), holder.get("pid"))
            told = True


def _end_holder(holder: dict[str, Any]) -> None:
    """Kills an orphan and its children: its scheduler died, and this process is the retry."""
    with contextlib.suppress(psutil.Error, TypeError, ValueError):
        process = psutil.Process(int(str(holder["pid"])))
        if process.create_time() == holder["started"] and process.pid != os.getpid():
            log.info("killing an orphaned earlier attempt of this measurement, pid %d", process.pid)
            for member in [*process.children(recursive=True), process]:
                with contextlib.suppress(psutil.Error):
                    member.kill()


def _end_others(state_file: Path, token: int) -> int:
    """Kills processes that carry another token of this lock; returns how many."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            carried, _, lock = process.environ().get(FENCE, "").partition("@")
            if lock == str(state_file) and carried != str(token) and process.pid != os.getpid():
                process.kill()
                found.append(process)
    psutil.wait_procs(found, timeout=10)
    return len(found)


def _read(state_file: Path) -> dict[str, Any]:
    try:
        found = json.loads(state_file.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
