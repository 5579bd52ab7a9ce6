"""Finds records whose quoted field goes on over a line's end, of which each line would count as an event."""

from __future__ import annotations

import re
from collections.abc import Iterable

from streamgauge.base.errors import UserError
from streamgauge.descriptions.source import Source

UNBALANCED = "unbalanced quote"


def refuse(source: Source, unbalanced: Iterable[tuple[str, int, bytes]]) -> None:
    """Raises UserError, naming the line, if a quoted field begins in one of the lines and ends in the next of them.

    unbalanced: (file, line number, text) of the lines with an odd number of quotes, in order. Lines between two of
    them have an even number, and so are within the field.
    """
    if source.quote is None or source.is_json:
        return
    quote, separator = (re.escape(mark.encode()) for mark in (source.quote, source.separator))
    inner = b"(?:[^" + quote + b"]|" + quote * 2 + b")*+"
    begins = re.compile(b"(?:^|" + separator + b")[ \t]*" + quote + inner + b"$")
    ends = re.compile(inner + quote + b"[ \t]*(?:" + separator + b"|\r?$)")
    open_file, open_line = "", 0
    for file, line, text in unbalanced:
        if open_line and file == open_file and ends.match(text):
            raise UserError(
                f"{file}: line {open_line}: a quoted field goes on to line {line}, allowed: a record a line; put "
                "blanks in place of the line ends in fields, or set source.quote: null if quotes mean nothing"
            )
        open_file, open_line = (file, line) if begins.search(text) else ("", 0)
