"""Texts from files of others, as terminals and spreadsheets take them: nothing in them is a command."""

from __future__ import annotations

import re

#: what a spreadsheet takes for the beginning of a formula
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[-+]?(\d[\d.]*|\.\d+)([eE][-+]?\d+)?")
#: control characters besides tab and newline, and those that turn the direction of what follows
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with control characters written as \\x1b, so that a terminal shows them instead of obeying."""
    return _CONTROLS.sub(lambda control: ascii(control[0])[1:-1], text)


def as_cell(text: str) -> str:
    """The text as a cell of a CSV file: a spreadsheet takes it for text or for a number, never for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
