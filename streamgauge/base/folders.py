"""Folders for files in the making and for locks, and what to do about a folder whose disk is full."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.base.places import Remote

#: environment variable: the directory of locks; containers of one host share it as a volume
LOCKS = "STREAMGAUGE_LOCKS"
_SHARED = (Path("/run/lock"), Path("/tmp"))
#: mode of a directory where everybody may make files and nobody may delete another's
_STICKY = stat.S_ISVTX | stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO
#: bytes; a disk with less room counts as full
_ROOM = 1 << 20


@contextmanager
def temporary_folder(path: Path) -> Iterator[None]:
    """Makes a folder and those above it; at the end deletes it, and those of them that are empty again."""
    new = [parent for parent in path.parents if not parent.exists()]
    try:
        path.mkdir(parents=True)
        yield
    finally:
        shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):  # the first one that holds something, such as what was published, ends the loop
            for folder in new:
                folder.rmdir()


@contextmanager
def telling_of_a_full_disk(folder: Path) -> Iterator[None]:
    """Raises UserError, with the folder and what to do, where the block fails as a disk is full.

    folder: where the block writes most; an error may name another one, or the temporary one may be full.
    """
    try:
        yield
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        temporary = Path(tempfile.gettempdir())
        where = Path(os.fsdecode(problem.filename)).parent if problem.filename else folder
        if not problem.filename and not _is_full(folder) and _is_full(temporary):
            where = temporary
        raise UserError(
            f"{where}: cannot be written: {os.strerror(problem.errno)}; free space there (`streamgauge gc` does so "
            "among artifacts), and start again: what is done stays"
        ) from problem


def _is_full(folder: Path) -> bool:
    return not isinstance(folder, Remote) and folder.exists() and shutil.disk_usage(folder).free < _ROOM


def host_place() -> Path:
    """The directory that all users of this host share for locks, whatever their TMPDIR."""
    if directory := os.environ.get(LOCKS):
        return Path(directory)
    for place in _SHARED:
        with suppress(OSError):
            if stat.S_IMODE(place.stat().st_mode) & _STICKY == _STICKY:
                return place
    return Path(tempfile.gettempdir())
