"""Finds the fields of many lines at once, and turns fields into Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Ints, Mask

Bytes = npt.NDArray[np.uint8]
NEWLINE, RETURN = 10, 13


class Lines:
    """The lines of a block of text. A line ends in a newline, or in a carriage return and a newline."""

    def __init__(self, data: bytes) -> None:
        """Finds the lines in data, in which each is ended by a newline."""
        self.data = data
        self.buffer: Bytes = np.frombuffer(data, np.uint8)
        newlines: Ints = np.flatnonzero(self.buffer == NEWLINE)
        self.count = len(newlines)
        #: line i is data[offsets[i] : offsets[i + 1]], its end included
        self.offsets: Ints = np.concatenate((np.zeros(1, np.int64), newlines + 1))
        #: before a first newline comes the last byte, which is a newline too
        returns = self.buffer[newlines - 1] == RETURN
        #: where the last field of each line ends
        self._ends: Ints = newlines - returns if returns.any() else newlines

    @property
    def lengths(self) -> Ints:
        """Bytes of each line, without its end."""
        return self._ends - self.offsets[:-1]

    def begin_with(self, text: bytes) -> Mask:
        beginning = self.lengths >= len(text)
        for at, byte in enumerate(text):
            beginning[beginning] = self.buffer[self.offsets[:-1][beginning] + at] == byte
        return beginning

    def column(self) -> pa.Array:
        """The lines as a binary array over the block's own bytes."""
        offsets = pa.py_buffer(self.offsets.astype(np.int32))
        return pa.Array.from_buffers(pa.binary(), self.count, [None, offsets, pa.py_buffer(self.data)])

    def not_utf8(self) -> Mask:
        bad: Mask = np.zeros(self.count, bool)
        if self.count and self.buffer.max() >= 0x80:
            try:
                self.column().view(pa.string()).validate(full=True)
            except pa.ArrowInvalid:
                odd = np.searchsorted(self.offsets, np.flatnonzero(self.buffer >= 0x80), side="right") - 1
                for line in np.unique(odd).tolist():
                    try:
                        self.data[self.offsets[line] : self.offsets[line + 1]].decode()
                    except UnicodeDecodeError:
                        bad[line] = True
        return bad


class Fields(Lines):
    """Lines whose fields have separators between them.

    A separator between a line's 1st and 2nd, 3rd and 4th … quote character belongs to the field.
    A line with an odd number of quotes is unbalanced; it is not continued on the next.
    """

    def __init__(self, data: bytes, separator: str, quote: str | None, fields: int, *, repeats: bool = False) -> None:
        """Finds lines and separators. fields: least number in a line; repeats: separators in a row part as one does."""
        super().__init__(data)
        self._separators: Ints = np.flatnonzero(self.buffer == ord(separator))
        self.bad: Mask = np.zeros(self.count, bool)
        self.unbalanced: Mask = np.zeros(self.count, bool)
        self.lacks: Mapping[str, Mask] = {}
        self._quote = ord(quote) if quote is not None and quote.encode() in data else None
        if self._quote is not None:
            quotes = np.flatnonzero(self.buffer == self._quote)
            per_line = np.diff(np.searchsorted(quotes, self.offsets))
            self.unbalanced = per_line % 2 == 1
            quotes = quotes[~np.repeat(self.unbalanced, per_line)]
            self._separators = self._separators[~_between(self._separators, quotes)]
        self._repeats = repeats
        if repeats:
            self._separators = self._last_of_each_run()
        blanks = [b for b in b" \t" if (repeats or b != ord(separator)) and b in data]
        #: true for each byte that is a blank around a field
        self._blanks = np.isin(np.arange(256), blanks)
        self._padded = bool(blanks)
        self._grid = self._alike(fields)
        #: lines that have all fields
        self.complete: Mask = np.ones(self.count, bool) if self._grid is not None else self.field_counts >= fields

    @property
    def field_counts(self) -> Ints:
        first, after = self._bounds
        return after - first + 1

    def field(self, index: int, *, trim: bool = True) -> tuple[Ints, Ints]:
        """Start and length of that field in every line, enclosing quotes left out; (0, 0) in incomplete lines.

        trim: look for blanks around it, where separators do not need it anyway.
        """
        starts: Ints
        ends: Ints
        if self._grid is not None:
            starts = self._grid[:, index - 1] + 1 if index else self.offsets[:-1]
            ends = self._grid[:, index] if index < self._grid.shape[1] else self._ends
        else:
            first, after = self._bounds
            known = np.append(self._separators, 0)
            starts = known[np.minimum(first + index - 1, len(known) - 1)] + 1 if index else self.offsets[:-1]
            ends = np.where(first + index < after, known[np.minimum(first + index, len(known) - 1)], self._ends)
            starts, ends = np.where(self.complete, starts, 0), np.where(self.complete, ends, 0)
        if self._padded and (trim or self._repeats):
            starts, ends = self._trimmed(starts, ends)
        if self._quote is not None:
            enclosed = (ends - starts >= 2) & (self.buffer[starts] == self._quote)
            enclosed &= self.buffer[ends - 1] == self._quote
            starts, ends = starts + enclosed, ends - enclosed
        return starts, ends - starts

    def longer_than(self, fields: int) -> Mask:
        """True for each line with more than separators behind so many fields."""
        if not len(self._separators) or (self._grid is not None and self._grid.shape[1] < fields):
            return np.zeros(self.count, bool)
        first, after = self._bounds
        end = self._separators[np.minimum(first + fields - 1, len(self._separators) - 1)]  # of the last field
        return (after - first >= fields) & (self._ends - end > after - first - fields + 1)

    def numbers(self, index: int) -> None:  # noqa: ARG002 - as AnyFields has it
        return None

    def _last_of_each_run(self) -> Ints:
        """Separators before another byte than a separator, without those before the first field of a line."""
        at = self._separators
        begins = np.ones(len(at), bool)
        begins[1:] = np.diff(at) > 1
        run = np.cumsum(begins) - 1
        leading = np.isin(at[begins], self.offsets)[run] if len(at) else begins
        ends = np.ones(len(at), bool)
        ends[:-1] = begins[1:]
        trailing = np.isin(at + 1, self._ends)
        return at[ends & ~leading & ~trailing]

    def _trimmed(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """The same fields without blanks around them."""
        blank = self._blanks
        if blank[self.buffer[starts]].any() or blank[self.buffer[ends - 1]].any():  # seldom
            starts, ends = starts.copy(), ends.copy()
            for edge, step in ((starts, 1), (ends, -1)):
                filled = np.flatnonzero(ends > starts)
                while len(padded := filled[blank[self.buffer[edge[filled] + min(step, 0)]]]):
                    edge[padded] += step
                    filled = padded[ends[padded] > starts[padded]]
        return starts, ends

    @property
    def quoted(self) -> bool:
        return self._quote is not None

    @cached_property
    def _bounds(self) -> tuple[Ints, Ints]:
        """Index in _separators of each line's first separator, and of the one after its last."""
        edges = np.searchsorted(self._separators, self.offsets)
        return edges[:-1], edges[1:]

    def _alike(self, fields: int) -> Ints | None:
        """Separators as a table of one row per line if all lines have equally many, which saves a search; else None."""
        each, rest = divmod(len(self._separators), max(self.count, 1))
        if rest or each < fields - 1:
            return None
        grid: Ints = self._separators.reshape(self.count, each)
        if each and not ((grid[:, 0] >= self.offsets[:-1]).all() and (grid[:, -1] < self._ends).all()):
            return None
        return grid


class AnyFields(Protocol):
    """Fields of many lines, in one buffer."""

    buffer: Bytes
    #: true for each line that has a quote too many, that has all fields, or that is not of its format
    unbalanced: Mask
    complete: Mask
    bad: Mask
    #: true for each line that does not have this path at all, where fields have paths
    lacks: Mapping[str, Mask]

    @property
    def quoted(self) -> bool: ...

    def field(self, index: int, *, trim: bool = True) -> tuple[Ints, Ints]:
        """Start and length of that field in every line."""

    def numbers(self, index: int) -> Ints | None:
        """Returns that field if all lines have whole numbers, read as such; None if only texts are known."""


class Joined:
    """Fields of lines, and behind them columns that stand beside the lines; the k-th of those has the index -1 - k."""

    def __init__(self, own: AnyFields, columns: Sequence[pa.Array]) -> None:
        self.unbalanced, self.complete, self.bad, self.quoted = own.unbalanced, own.complete, own.bad, own.quoted
        self.lacks = own.lacks
        self._own, self._places = own, list[tuple[Ints, Ints]]()
        buffers, end = [own.buffer], len(own.buffer)
        for column in columns:
            buffer, starts, lengths = spread(column)
            self._places.append((starts + end, lengths))
            buffers.append(buffer)
            end += len(buffer)
        self.buffer: Bytes = np.concatenate(buffers)

    def field(self, index: int, *, trim: bool = True) -> tuple[Ints, Ints]:
        return self._own.field(index, trim=trim) if index >= 0 else self._places[-1 - index]

    def numbers(self, index: int) -> Ints | None:
        return self._own.numbers(index) if index >= 0 else None


def _between(places: Ints, quotes: Ints) -> Mask:
    """True for each place between a quote and its partner, the next one; both lists are sorted."""
    begin, end = np.searchsorted(places, quotes).reshape(-1, 2).T
    some = begin < end
    step = np.zeros(len(places) + 1, np.int8)
    step[begin[some]] += 1
    step[end[some]] -= 1
    return np.cumsum(step[:-1], dtype=np.int8).view(bool)


def texts(buffer: Bytes, starts: Ints, lengths: Ints) -> pa.Array:
    """Copies the fields into a binary array."""
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    data = pa.py_buffer(np.ascontiguousarray(buffer[places]))
    return pa.Array.from_buffers(pa.binary(), len(starts), [None, pa.py_buffer(offsets.astype(np.int32)), data])


def spread(column: pa.Array) -> tuple[Bytes, Ints, Ints]:
    """(bytes, starts, lengths) of the texts of a binary array."""
    _, offsets, data = column.buffers()
    edges = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    buffer = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return buffer, edges[:-1], np.diff(edges)


def with_points(column: pa.Array) -> pa.Array:
    """Numbers with a decimal point in place of a comma; a point in them, which would part thousands, is a blank."""
    return pc.replace_substring(pc.replace_substring(column, b".", b" "), b",", b".")


def windows(buffer: Bytes, starts: Ints, width: int) -> Bytes:
    """The `width` bytes from each start on, as rows of a matrix. No start + width may exceed the buffer."""
    return np.lib.stride_tricks.sliding_window_view(buffer, width)[starts]


def widths(lengths: Ints, longest: int) -> list[int]:
    """The lengths from 1 to `longest` that occur."""
    return [
        width
        for width in np.flatnonzero(np.bincount(np.minimum(lengths, longest + 1))).tolist()
        if 0 < width <= longest
    ]


READABLE, UNREADABLE, OUT_OF_RANGE = 0, 1, 2
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def by_unique(buffer: Bytes, starts: Ints, lengths: Ints, read: Callable[[str], int]) -> tuple[Ints, Bytes]:
    """(values, codes) of all fields by read(text), called once per distinct text.

    A ValueError gives the code UNREADABLE, a value beyond int64 gives OUT_OF_RANGE.
    """
    encoded = texts(buffer, starts, lengths).dictionary_encode()
    values = np.zeros(len(encoded.dictionary), np.int64)
    codes = np.zeros(len(encoded.dictionary), np.uint8)
    for at, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            value = read(text.decode())
        except ValueError:
            codes[at] = UNREADABLE
        else:
            if INT64_MIN <= value <= INT64_MAX:
                values[at] = value
            else:
                codes[at] = OUT_OF_RANGE
    which = encoded.indices.to_numpy()
    return values[which], codes[which]
