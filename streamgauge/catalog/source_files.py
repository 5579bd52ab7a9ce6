"""Source files as the store sees them: size and time of change, by which their hash is remembered."""

from __future__ import annotations

from streamgauge.base.errors import UserError
from streamgauge.base.places import Status, place, status


def mark_of(name: str) -> tuple[str, int]:
    """(cache key, size in bytes) of a file; the key changes with its path, size or mtime."""
    stat = stat_source(name)
    return f"{place(name).resolve()}:{stat.st_size}:{stat.st_mtime_ns}", stat.st_size


def stat_source(name: str, key: str | None = "source.files") -> Status:
    """Size and mtime of a source file. Raises UserError if it cannot be read.

    key: by which the benchmark file names it; None if a command names it.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UserError(f"{name!a}: the name is not UTF-8; rename the file") from None
    try:
        return status(name)
    except IsADirectoryError:
        raise UserError(f"{name}: is a directory, allowed: a file") from None
    except FileNotFoundError:
        what = "source file" if key in (None, "source.files") else "file"
        where = "the path" if key is None else f"{key} (relative to the benchmark file)"
        raise UserError(f"{name}: no such {what}; check {where}") from None
    except OSError as problem:
        raise UserError(f"{name}: cannot be read: {' '.join(str(problem.strerror or problem).split())}") from None
