"""Lets one measurement at a time run on a host, after ending all processes that an earlier one left over.

The lock is the operating system's, so it ends with its holder. It lies where all users of the host find it. Every
holder has a higher fencing token than the one before, and its children carry it in their environment. A new holder
begins by killing every process of its user that carries another token of the lock.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict, cast

import psutil
from filelock import FileLock, Timeout

from streamgauge.base.errors import Outage, UserError
from streamgauge.base.folders import LOCKS, host_place

FENCE = "STREAMGAUGE_FENCE"
log = logging.getLogger("streamgauge")


class Holder(TypedDict, total=False):
    """State of the lock, by the file that each of its holders writes."""

    token: int
    pid: int
    user: int
    started: float
    what: str
    until: float  # when it expected to be done, s since the epoch


@contextmanager
def measuring(
    what: str, *, expected_s: float = 0.0, patience_s: float = 3600.0, place: Path | None = None
) -> Iterator[int]:
    """Holds the host's lock in a `with` block; yields the token. A holder of the same `what` is an orphan, and killed.

    expected_s: how long this measurement may take, so that others wait for it. place: the directory of the lock instead
    of the host's. Raises Outage when another measurement holds the lock for longer than it said, and than patience_s:
    it is tried again later. Raises UserError if the directory cannot be used.
    """
    state_file = (place or host_place()) / "streamgauge.measuring.json"
    lock = FileLock(state_file.with_suffix(".lock"), mode=0o666)
    _acquire(lock, state_file, what, patience_s)
    try:
        # a state that was torn must not give a token again
        token = int(_read(state_file).get("token", 0) or time.time_ns() // 1_000_000) + 1
        me = psutil.Process()
        mine: Holder = {"pid": me.pid, "user": os.getuid(), "started": me.create_time(), "what": what}
        mine["until"] = time.time() + expected_s
        _write(state_file, {"token": token, **mine})
        ended = _end_others(state_file, token)
        if ended:
            log.info("ended %d processes that an earlier measurement left behind", ended)
        os.environ[FENCE] = f"{token}@{state_file}"
        yield token
    finally:
        os.environ.pop(FENCE, None)
        with contextlib.suppress(OSError):  # forgets `what`: whoever waits must not take us for an orphan
            _write(state_file, {"token": _read(state_file).get("token", 0)})
        lock.release()


def _acquire(lock: FileLock, state_file: Path, what: str, patience_s: float) -> None:
    since, waited_for = time.monotonic(), None
    while True:
        try:
            lock.acquire(timeout=2.0)
            return
        except Timeout:
            pass
        except OSError as problem:
            told_by = f"measuring lock {state_file.parent}: {problem.strerror}"
            raise UserError(f"{told_by}; set {LOCKS} to a directory where you may write") from None
        holder = _read(state_file)
        if (holder.get("what"), holder.get("user")) == (what, os.getuid()):
            _end_holder(holder)
        if holder.get("pid") is not None and holder != waited_for:
            log.info("another measurement has the machine: waiting for %s (pid %s)", holder.get("what"), holder["pid"])
            since, waited_for = time.monotonic(), holder
        waited = time.monotonic() - since
        if waited > patience_s and time.time() > _until(holder):
            raise Outage(
                f"measuring lock: {holder.get('what', 'another measurement')} (pid {holder.get('pid')}) has held it "
                f"for {waited:.0f} s, longer than it said; wait for it, or end that process"
            )


def _until(holder: Holder) -> float:
    """The moment at which a holder expected to be done, s since the epoch; 0 if it said none."""
    until = holder.get("until")
    return float(until) if isinstance(until, int | float) else 0.0


def _end_holder(holder: Holder) -> None:
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
    ended = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            carried, _, lock = process.environ().get(FENCE, "").partition("@")
            if lock == str(state_file) and carried != str(token) and process.pid != os.getpid():
                process.kill()
                ended.append(process)
    psutil.wait_procs(ended, timeout=10)
    return len(ended)


def _write(state_file: Path, state: Holder) -> None:
    """Writes in place: in a sticky directory nobody may put a file in the place of another user's."""
    try:
        descriptor = os.open(state_file, os.O_WRONLY)
    except FileNotFoundError:
        descriptor = os.open(state_file, os.O_WRONLY | os.O_CREAT, 0o666)
        os.fchmod(descriptor, 0o666)
    try:
        data = json.dumps(state).encode() + b"\n"
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)


def _read(state_file: Path) -> Holder:
    """The state; {} if there is none. A longer one, whose end a killed writer left behind this one, does not matter."""
    try:
        state, _ = json.JSONDecoder().raw_decode(state_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("Holder", state) if isinstance(state, dict) else {}
