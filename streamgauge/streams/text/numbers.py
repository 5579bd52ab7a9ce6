"""Reads decimal fields as int64, exactly, all fields at once."""

from __future__ import annotations

import re
from fractions import Fraction
from math import floor

import numpy as np

from streamgauge.base.arrow import Ints
from streamgauge.streams.text.fields import OUT_OF_RANGE, READABLE, UNREADABLE, Bytes, by_unique, widths, windows

_DECIMAL = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
#: a power of ten beyond it is larger than int64, or too small to count, whatever the digits of a field this long
_EXPONENT_MAX = 10_000
_DIGITS_MAX = 19  # every number of this many digits fits into 64 unsigned bits
_MINUS = ord("-")


def integers(buffer: Bytes, starts: Ints, lengths: Ints) -> tuple[Ints, Bytes]:
    """(values, codes) of fields that are whole numbers: 42, -7, +7, 42.0 or 4.2e1. Blanks make a number unreadable."""
    values, codes = _digits(buffer, starts, lengths)
    rest = np.flatnonzero((codes == UNREADABLE) & (lengths > 0))
    if len(rest):  # plus signs, more digits or a larger value than fit, and what is no number at all
        values[rest], codes[rest] = by_unique(buffer, starts[rest], lengths[rest], _whole)
    return values, codes


def decimals(buffer: Bytes, starts: Ints, lengths: Ints, numerator: int, denominator: int) -> tuple[Ints, Bytes]:
    """(values, codes) of floor(field · numerator / denominator), computed exactly.

    Integers are fast; decimal fractions are read once per distinct text. numerator or denominator must be 1.
    """
    values, codes = scaled(*_digits(buffer, starts, lengths), numerator, denominator)
    rest = np.flatnonzero((codes == UNREADABLE) & (lengths > 0))
    if len(rest):
        factor = Fraction(numerator, denominator)
        values[rest], codes[rest] = by_unique(
            buffer, starts[rest], lengths[rest], lambda text: floor(_exact(text) * factor)
        )
    return values, codes


def scaled(values: Ints, codes: Bytes, numerator: int, denominator: int) -> tuple[Ints, Bytes]:
    """(values, codes) of floor(value · numerator / denominator), of which one is 1."""
    if denominator > 1:
        return values // denominator, codes
    if numerator > 1:
        limit = (2**63 - 1) // numerator
        codes[(codes == READABLE) & ((values > limit) | (values < -limit))] = OUT_OF_RANGE
        values = np.where(codes == READABLE, values, 0) * numerator
    return values, codes


def _digits(buffer: Bytes, starts: Ints, lengths: Ints) -> tuple[Ints, Bytes]:
    """(values, codes) of fields of 1 to 19 digits after an optional minus; all others are UNREADABLE."""
    values = np.zeros(len(starts), np.int64)
    codes = np.full(len(starts), UNREADABLE, np.uint8)
    for length in widths(lengths, _DIGITS_MAX + 1):
        same = lengths == length
        # nearly always all fields are equally long
        here: Ints | slice = slice(None) if same.all() else np.flatnonzero(same)
        rows = windows(buffer, starts[here], length)
        negative = rows[:, 0] == _MINUS
        total = np.zeros(len(rows), np.uint64)
        wrong = negative & (length == 1) if length <= _DIGITS_MAX else ~negative
        for place in range(length):
            digit = rows[:, place] - np.uint8(48)
            if place == 0:
                digit[negative] = 0
            wrong |= digit > 9
            total *= np.uint64(10)
            total += digit
        wrong |= total > np.uint64(2**63 - 1)
        signed = total.view(np.int64)
        values[here] = np.where(wrong, 0, np.where(negative, -signed, signed))
        codes[here] = np.where(wrong, UNREADABLE, READABLE)
    return values, codes


def _exact(text: str) -> Fraction:
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise ValueError(text)
    sign, before, after, power = match[1], match[2], match[3] or "", int(match[4] or 0)
    digits = (before + after).lstrip("0")
    if not digits:
        return Fraction(0)
    shift = power - len(after)
    if abs(len(digits) + shift) > _EXPONENT_MAX:  # not written out: 1e999999999 would take minutes and all memory
        shift = _EXPONENT_MAX if shift > 0 else -_EXPONENT_MAX
        digits = "1"
    return int(sign + digits) * Fraction(10) ** shift


def _whole(text: str) -> int:
    value = _exact(text)
    if value.denominator > 1:
        raise ValueError(text)
    return int(value)
