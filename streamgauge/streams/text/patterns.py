"""Parses datetime patterns, strptime's (%Y-%m-%d) and letters (yyyy-MM-dd), into one list of pieces.

The pieces are used in two ways: as a regular expression for one text, and by fixed width for many (times.py).
Names of months and days are English whatever the locale.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from streamgauge.base.errors import UserError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
#: maps a kind of field to (regular expression, width in characters; 0 if it is not fixed)
KINDS = {
    "Y": (r"[0-9]{4}", 4),
    "y": (r"[0-9]{2}", 0),
    "m": (r"1[0-2]|0[1-9]|[1-9]", 2),
    "b": ("|".join(_MONTHS), 0),
    "B": (_FULL_MONTHS, 0),
    "d": (r"3[01]|[12][0-9]|0[1-9]|[1-9]| [1-9]", 2),
    "j": (r"36[0-6]|3[0-5][0-9]|[12][0-9]{2}|0[1-9][0-9]|00[1-9]|[1-9][0-9]|0[1-9]|[1-9]", 0),
    "H": (r"2[0-3]|[01][0-9]|[0-9]", 2),
    "I": (r"1[0-2]|0[1-9]|[1-9]", 0),
    "M": (r"[0-5][0-9]|[0-9]", 2),
    "S": (r"[0-5][0-9]|[0-9]", 2),
    "f": (r"[0-9]{1,9}", 6),
    "L": (r"[0-9]{1,3}", 3),  # milliseconds as a number: 7 is 7 ms, where %f reads 7 tenths of a second
    "p": ("[ap]\\.?[\\s\u00a0\u202f]?m\\.?", 0),
    "a": ("|".join(day[:3] for day in _DAYS.split("|")), 0),
    "A": (_DAYS, 0),
    "z": (r"Z|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9]", 0),
    "Z": (r"UTC|GMT|Z", 0),
}
#: what a blank of a pattern stands for: Unicode's blanks, too, as CLDR has them before PM
_BLANKS = "[\\s\u00a0\u2000-\u200a\u202f\u205f\u3000]+"
_SHORTHANDS = {"T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y", "F": "%Y-%m-%d", "e": "%d", "h": "%b"}
#: maps a letter to its kinds by the number of repetitions; the last one is for that many and more
_LETTERS: dict[str, tuple[str, ...]] = {
    "y": ("Y", "y", "Y"), "u": ("Y", "y", "Y"), "M": ("m", "m", "b", "B"), "L": ("m", "m", "b", "B"), "d": ("d",),
    "D": ("j",), "H": ("H",), "h": ("I",), "m": ("M",), "s": ("S",), "a": ("p",), "E": ("a", "a", "a", "A"),
    "Z": ("z",), "x": ("z",), "X": ("z",), "z": ("Z",),
}  # fmt: skip


#: a kind of field, those of which it needs one, and what a pattern without it has
_LONE = (
    ("M", "HI", "minutes (%M, mm) without an hour; a month is %m or MM"),
    ("p", "I", "AM or PM without an hour from 1 to 12, which is %I or hh"),
)


@dataclass(frozen=True)
class Piece:
    """A field of a datetime; or, with kind "", one literal character, which may be any of those in text."""

    kind: str
    text: str = ""
    width: int = 0  # number of digits of a fraction, if the pattern declares it


@lru_cache(maxsize=64)
def pieces(pattern: str) -> tuple[Piece, ...]:
    """Pieces of a pattern. Raises UserError for an unknown part, a field that comes twice, or no field."""
    all_pieces = _strptime(pattern) if "%" in pattern else _letters(pattern)
    kinds = [piece.kind for piece in all_pieces if piece.kind]
    twice = sorted({kind for kind in kinds if kinds.count(kind) > 1})
    twice += ["f", "L"] if {"f", "L"} <= set(kinds) else []
    if twice or not kinds:
        raise UserError(f"format: found {pattern!r}, allowed: each field of a datetime once, such as %Y-%m-%d %H:%M:%S")
    for kind, needed, why in _LONE:
        if kind in kinds and not set(kinds) & set(needed):
            raise UserError(f"format: found {pattern!r}, which has {why}")
    if "j" in kinds and set(kinds) & set("mbBd"):
        raise UserError(f"format: found {pattern!r}, which has a day of the year beside a month or a day; give one")
    return tuple(all_pieces)


@lru_cache(maxsize=64)
def yearless(pattern: str) -> bool:
    """True for a pattern that has a day but no year."""
    kinds = {piece.kind for piece in pieces(pattern)}
    return bool(kinds & set("mbBdj")) and not kinds & {"Y", "y"}


def _strptime(pattern: str) -> list[Piece]:
    for short, long in _SHORTHANDS.items():
        pattern = re.sub(rf"(?<!%)((?:%%)*)%{short}", rf"\1{long}", pattern)
    parts = []
    for directive, literal in re.findall(r"%(.?)|([^%])", pattern):
        if literal or directive == "%":
            parts.append(Piece("", literal or "%"))
        elif directive in KINDS:
            parts.append(Piece(directive))
        else:
            allowed = " ".join(f"%{kind}" for kind in (*KINDS, *_SHORTHANDS))
            raise UserError(f"format: found %{directive} in {pattern!r}, allowed: {allowed}")
    return parts


def _letters(pattern: str) -> list[Piece]:
    parts: list[Piece] = []
    for quoted, run, letter, other in re.findall(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|(.)", pattern):
        if letter == "S":
            parts.append(Piece("f", width=len(run)))
        elif letter in _LETTERS:
            kinds = _LETTERS[letter]
            parts.append(Piece(kinds[min(len(run), len(kinds)) - 1]))
        elif letter and letter != "T":
            raise UserError(f"format: found {run!r} in {pattern!r}, allowed: {' '.join(_LETTERS)} S, others in quotes")
        else:
            text = quoted.replace("''", "'") or run or other or "'"
            parts += [Piece("", character) for character in text]
    if any(piece.width > 9 for piece in parts):
        raise UserError(f"format: found {pattern!r}, allowed: at most 9 digits of a second's fraction")
    return parts


@lru_cache(maxsize=256)
def expression(pattern: str) -> re.Pattern[str]:
    """The regular expression of a pattern, with a group for each kind of field."""
    return re.compile("".join(map(_expression, pieces(pattern))), re.IGNORECASE | re.ASCII)


class Reader:
    """Reads texts of a pattern, one by one, as nanoseconds since the epoch.

    Fields that the pattern leaves out are those of January 1st, 00:00:00. A time without an offset is one of the
    zone. If the zone has it twice, the earlier one is meant; if the zone skips it, the offset before the gap applies.
    """

    def __init__(self, pattern: str, zone: str, year: int = 1970) -> None:
        self._zone, self._year = ZoneInfo(zone), year
        self._expression = expression(pattern)

    def __call__(self, text: str) -> int:
        """Nanoseconds since the epoch. Raises ValueError if the text is not of the pattern, or no such time exists."""
        match = self._expression.fullmatch(text)
        if match is None:
            raise ValueError(text)
        got = match.groupdict()
        year = int(got.get("Y") or self._year)
        if short := got.get("y"):
            year = int(short) + (1900 if int(short) >= 69 else 2000)  # as POSIX has it
        month = int(got.get("m") or 1)
        if name := got.get("b") or got.get("B"):
            month = _MONTHS.index(name[:3].lower()) + 1
        hour = int(got.get("H") or 0)
        if twelve := got.get("I"):
            hour = int(twelve) % 12 + (12 if (got.get("p") or "").lower().startswith("p") else 0)
        moment = datetime(year, month, int(got.get("d") or 1), hour, int(got.get("M") or 0), int(got.get("S") or 0))
        if day := got.get("j"):
            moment += timedelta(days=int(day) - 1)
            if moment.year != year:
                raise ValueError(text)
        offset = _offset(got["z"]) if got.get("z") else 0 if got.get("Z") else None
        nanoseconds = int((got.get("f") or "").ljust(9, "0")) + int(got.get("L") or 0) * 10**6
        return epoch_seconds(moment, offset, self._zone) * 10**9 + nanoseconds


def fractions(pattern: str, times: list[bytes]) -> list[str]:
    """The digits that %f reads in those texts that are of the pattern."""
    if not any(piece.kind == "f" and not piece.width for piece in pieces(pattern)):
        return []
    matches = (expression(pattern).fullmatch(text.decode(errors="replace")) for text in times)
    return [match["f"] for match in matches if match is not None]


def epoch_seconds(moment: datetime, offset: int | None, zone: ZoneInfo) -> int:
    """Seconds since the epoch of a naive moment; offset in seconds east of UTC, None for that of the zone."""
    if offset is None:
        own = moment.replace(tzinfo=zone).utcoffset()
        offset = 0 if own is None else own.days * 86400 + own.seconds
    return (moment.toordinal() - 719163) * 86400 + moment.hour * 3600 + moment.minute * 60 + moment.second - offset


def _offset(text: str) -> int:
    if text in "Zz":
        return 0
    digits = text[1:].replace(":", "")
    return (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * (-1 if text[0] == "-" else 1)


def _expression(piece: Piece) -> str:
    if not piece.kind:
        return _BLANKS if piece.text == " " else re.escape(piece.text)
    expression = f"[0-9]{{{piece.width}}}" if piece.width else KINDS[piece.kind][0]
    return f"(?P<{piece.kind}>{expression})"
