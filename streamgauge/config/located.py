"""Texts of files that keys of a benchmark file name."""

from __future__ import annotations

from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.base.places import small_text


def text_of(file: Path, key: str) -> str:
    """Text of a file that a key names. Raises UserError."""
    try:
        return small_text(file, most_bytes=1 << 20)
    except OSError as problem:
        raise UserError(f"{key}: {file}: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise UserError(f"{key}: {file}: byte {problem.start} is not UTF-8") from None
