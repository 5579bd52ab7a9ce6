"""Keeps a run, or an Airflow, to one command at a time: a second one would end or mix up what the first has begun.

A claim is the operating system's lock, so it ends with its holder, however that ends. That of a run on a remote store
lies among this host's locks, where every command of its user finds it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from streamgauge.base.errors import UserError
from streamgauge.base.folders import host_place
from streamgauge.base.places import Remote, as_user_error

#: environment variable: the claim of the command that started this process, which does not keep this process out
CLAIM = "STREAMGAUGE_CLAIM"
_FILE = ".claim.json"


class Holder(BaseModel):
    """Record of whoever claimed a run last."""

    model_config = ConfigDict(frozen=True)
    pid: int
    host: str
    since: str


@contextmanager
def claimed(run: Path, *, shared: bool = False) -> Iterator[dict[str, str]]:
    """Claims a run in a `with` block; yields the environment variables for whatever works on it for this process.

    shared: other shared claims may be held at the same time, as by the stages of one DAG run.
    Raises UserError, which names the holder, if somebody else has claimed the run.
    """
    file = _file_of(run)
    ours = {CLAIM: str(file.absolute())}
    if os.environ.get(CLAIM) == ours[CLAIM]:
        yield ours
        return
    with _claimed_file(file, f"run {run.name}", "name another run", shared=shared):
        yield ours


@contextmanager
def claimed_folder(folder: Path, what: str, instead: str) -> Iterator[None]:
    """Claims a folder of this machine in a `with` block; what, instead: for the message, as in `claimed`."""
    with _claimed_file(folder / _FILE, what, instead):
        yield


def _file_of(run: Path) -> Path:
    if not isinstance(run, Remote):
        return run / _FILE
    name = hashlib.sha256(str(run).encode()).hexdigest()[:16]
    return host_place() / f"streamgauge-{os.getuid()}-{name}{_FILE}"  # another user's could not be opened


@contextmanager
def _claimed_file(file: Path, what: str, instead: str, *, shared: bool = False) -> Iterator[None]:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as problem:
        raise as_user_error(problem, file) from None
    try:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{what}: {_holder(file)}; wait for its end, or {instead}") from None
        _write(descriptor)
        yield
    finally:
        os.close(descriptor)


def is_claimed(run: Path) -> bool:
    """True while a process of this host works on a run, this one included."""
    try:
        with open(_file_of(run), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _write(descriptor: int) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    os.ftruncate(descriptor, 0)
    data = Holder(pid=os.getpid(), host=platform.node(), since=now).model_dump_json().encode()
    with suppress(OSError):  # on a full disk the lock holds without a name
        os.pwrite(descriptor, data, 0)


def _holder(file: Path) -> str:
    try:
        holder = Holder.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return "another process works on it"
    return f"process {holder.pid} on host {holder.host} has worked on it since {holder.since}"
