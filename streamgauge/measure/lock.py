"""One measurement at a time on a host, and nothing left of the one before.

The lock is the operating system's: it goes with its holder. Every holder has a higher fencing token, which
its children carry in their environment; whoever takes the lock first ends all that carry another one of it.
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

from streamgauge.artifacts import write_json
from streamgauge.errors import UserError

FENCE = "STREAMGAUGE_FENCE"
log = logging.getLogger("streamgauge")


@contextmanager
def measuring(what: str, *, patience_s: float = 3600.0, place: Path | None = None) -> Iterator[int]:
    """Holds the host's lock; gives the token. A holder that measures the same `what` is an orphan: it is ended.

    Raises UserError when another measurement holds it for longer than the patience.
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
        with contextlib.suppress(OSError):  # nobody's now: who waits must not take us for an orphan
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
                f"measuring lock: {holder.get('what', 'another measurement')} (pid {holder.get('pid')}) has held it for "
                f"{patience_s:.0f} s; wait for it, or end that process"
            )
        if not told:
            log.info("waiting for %s (pid %s) to finish measuring", holder.get("what"), holder.get("pid"))
            told = True


def _end_holder(holder: dict[str, Any]) -> None:
    """An orphan: a scheduler died, its job lives on, and the retry is us."""
    with contextlib.suppress(psutil.Error, TypeError, ValueError):
        process = psutil.Process(int(str(holder["pid"])))
        if process.create_time() == holder["started"] and process.pid != os.getpid():
            log.info("ending the orphan of the same measurement, pid %d", process.pid)
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
