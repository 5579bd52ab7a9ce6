"""The door of all that a command prints: escape codes of others are shown, and secrets are not."""

from __future__ import annotations

import io
import re
import sys
from typing import IO, TextIO

from streamgauge.base.secrets import masked_text

#: what a spreadsheet takes for the beginning of a formula
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[-+]?(\d[\d.]*|\.\d+)([eE][-+]?\d+)?")
#: control characters besides tab and newline, and those that turn the direction of what follows
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: modules that alone write _OURS, and only to a terminal
_TRUSTED = ("rich.", "streamgauge.base.live")
#: colours, and what moves the cursor for a line of progress
_OURS = re.compile(r"(\x1b\[[0-9;?]*[A-Za-z]|\r)")


def printable(text: str) -> str:
    """The text with control characters written as \\x1b, so that a terminal shows them instead of obeying."""
    return _CONTROLS.sub(lambda control: ascii(control[0])[1:-1], text)


def as_cell(text: str) -> str:
    """The text as a cell of a CSV file: a spreadsheet takes it for text or for a number, never for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


class Printed(io.TextIOBase):
    """A text stream in front of another one: it masks secrets, and shows escape codes that are not ours."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        text = masked_text(text)
        if self._stream.isatty() and sys._getframe(1).f_globals.get("__name__", "").startswith(_TRUSTED):
            parts = _OURS.split(text)
            self._stream.write("".join(one if _OURS.fullmatch(one) else printable(one) for one in parts))
        else:
            self._stream.write(printable(text))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    @property
    def buffer(self) -> IO[bytes]:
        return self._stream.buffer


def arrange() -> None:
    """Puts the door in front of standard output and standard error."""
    if not isinstance(sys.stdout, Printed):
        sys.stdout = Printed(sys.stdout)
    if not isinstance(sys.stderr, Printed):
        sys.stderr = Printed(sys.stderr)
