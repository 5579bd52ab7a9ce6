"""Reads the values at paths in JSON lines: msgspec takes most lines at its speed, Python's json what that refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

import msgspec
import numpy as np

from streamgauge.base.arrow import Ints, Mask
from streamgauge.base.errors import UserError
from streamgauge.descriptions.source import Source
from streamgauge.descriptions.topic import is_beside
from streamgauge.streams.text.fields import Bytes, Lines

#: numbers stay as they are written, so that no digit of a time is lost
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
#: what json raises for text that is no JSON, or is nested too deeply
_BROKEN = (ValueError, RecursionError)
_REFUSED = (msgspec.MsgspecError, RecursionError)
#: the bytes of a value as they stand in the line; none where there is no value
_Raw = msgspec.Raw | bytes
_NOTHING = msgspec.Raw()
#: a key with one of these is none that msgspec looks for
_UNNAMED = re.compile(r'["\\\x00-\x1f]')


def paths(source: Source) -> list[str]:
    """Paths of the values that a source needs, each once: a key, or keys with dots between them."""
    return list(dict.fromkeys(str(place) for place in source.needed if not (source.kafka and is_beside(place))))


def numbers(source: Source) -> frozenset[str]:
    """Returns those of the paths at which whole numbers are expected."""
    times = [column for column in (source.time, source.arrival) if column is not None and column.unit is not None]
    counts = [place for name, place in source.places.items() if source.kinds[name] == "int64"]
    expected = map(str, [*(part for column in times for part in column.parts), *counts])
    return frozenset(path for path in expected if "." not in path) if source.decimal == "point" else frozenset()


class Values:
    """The values at paths in each line, as fields (see fields.Fields) of a text of their own.

    A value that is null, missing, a list or an object is an empty field; line ends in texts are blanks.
    Where `whole` paths have a whole number in each line, these are read at once, and have no text.
    """

    quoted = False

    def __init__(self, lines: Lines, wanted: Sequence[str], whole: frozenset[str] = frozenset()) -> None:
        self.unbalanced: Mask = np.zeros(lines.count, bool)
        self.complete: Mask = np.ones(lines.count, bool)
        #: true for each line that is no JSON object
        self.bad: Mask = np.zeros(lines.count, bool)
        self._count = lines.count
        self._numbers: dict[int, Ints] = {}
        raws = self._with_numbers(lines, _reader(tuple(wanted), whole)) if whole else None
        raws = self._raws(lines, _reader(tuple(wanted))) if raws is None else raws
        lengths: Ints = np.fromiter(map(len, raws), np.int64, len(raws))
        named = [path for at, path in enumerate(wanted) if at not in self._numbers]
        none = lengths.reshape(len(named), lines.count) == 0  # null is a value, too
        self.lacks: Mapping[str, Mask] = dict(zip(named, none, strict=True))
        data = b"".join([*raws, b"\n"])
        starts: Ints = np.cumsum(lengths) - lengths
        first = np.frombuffer(data, np.uint8)[starts]
        lengths[np.isin(first, np.frombuffer(b"n[{", np.uint8))] = 0
        texts = (first == ord('"')) & (lengths > 0)
        starts += texts
        lengths -= 2 * texts
        if b"\\" in data:
            data = _unescaped(data, starts, lengths)
        self.buffer: Bytes = np.frombuffer(data, np.uint8)
        self._starts, self._lengths = starts, lengths

    def field(self, index: int, *, trim: bool = True) -> tuple[Ints, Ints]:  # noqa: ARG002 - as fields.Fields has it
        """Start and length of the value at that path in every line; blanks of a text belong to it."""
        if index in self._numbers:
            return np.zeros(self._count, np.int64), np.zeros(self._count, np.int64)
        place = index - sum(number < index for number in self._numbers)
        here = slice(place * self._count, (place + 1) * self._count)
        return self._starts[here], self._lengths[here]

    def numbers(self, index: int) -> Ints | None:
        """The whole numbers at that path; None if some of its values are none."""
        return self._numbers.get(index)

    def _with_numbers(self, lines: Lines, reader: _Reader) -> list[_Raw] | None:
        """The values at the paths that are not whole; None if the numbers at the others are not all whole."""
        objects = reader.objects(lines)
        if objects is None:
            return None
        raws: list[_Raw] = []
        try:
            for at, path in enumerate(reader.paths):
                if path in reader.whole:
                    values = map(attrgetter(_name(reader.tree, path)), objects)
                    self._numbers[at] = np.fromiter(values, np.int64, len(objects))
        except OverflowError:  # more than 64 bits
            self._numbers.clear()
            return None
        for path in reader.paths:
            raws += [] if path in reader.whole else _values(objects, reader.tree, path)
        return raws

    def _raws(self, lines: Lines, reader: _Reader) -> list[_Raw]:
        """The values at each path, those at the first path first."""
        objects = reader.objects(lines)
        others: dict[int, list[bytes]] = {}
        if objects is None:
            objects, empty = [], reader.kind()
            for at, line in enumerate(lines.data.split(b"\n")[:-1]):
                value = reader.value(line)
                objects.append(empty if value is None else value)
                if value is None:
                    others[at] = self._by_json(at, line, reader.paths)
        raws: list[_Raw] = []
        for number, path in enumerate(reader.paths):
            column = _values(objects, reader.tree, path)
            for at, values in others.items():
                column[at] = values[number]
            raws += column
        return raws

    def _by_json(self, at: int, line: bytes, wanted: Sequence[str]) -> list[bytes]:
        try:
            value = _DECODER.decode(line.decode())
        except _BROKEN:
            value = None
        self.bad[at] = not isinstance(value, dict)
        inner = (_at(value, path, _NOTHING) for path in wanted)
        return [b"" if one is _NOTHING else json.dumps(one).encode() for one in inner]


#: keys, and what is looked for in the value at each
_Tree = dict[str, "_Tree"]


@dataclass(frozen=True)
class _Reader:
    """Reads the values at these paths by msgspec."""

    paths: tuple[str, ...]
    decoder: msgspec.json.Decoder[msgspec.Struct] | None  # None: msgspec cannot name these keys
    kind: type[msgspec.Struct]
    tree: _Tree
    whole: frozenset[str]

    def objects(self, lines: Lines) -> list[msgspec.Struct] | None:
        """Returns an object for each line, all read at once; None if not all lines can be.

        msgspec takes any blank between objects, and line ends in them. If each line has braces at its ends, a line
        end parts two objects, since it can stand neither in a text nor between braces. So as many objects as lines
        are an object a line.
        """
        ends = lines.offsets[:-1] + lines.lengths - 1
        if self.decoder is None or (lines.buffer[[lines.offsets[:-1], ends]] != [[ord("{")], [ord("}")]]).any():
            return None
        try:
            objects = self.decoder.decode_lines(lines.data)
        except _REFUSED:
            return None
        return objects if len(objects) == lines.count else None

    def value(self, line: bytes) -> msgspec.Struct | None:
        """The object in a line; None if msgspec cannot read it."""
        try:
            return self.decoder.decode(line) if self.decoder is not None else None
        except _REFUSED:
            return None


@lru_cache(maxsize=64)
def _reader(wanted: tuple[str, ...], whole: frozenset[str] = frozenset()) -> _Reader:
    tree: _Tree = {}
    for path in wanted:
        tree.setdefault(path, {})
        inner = tree
        for key in path.split("."):
            inner = inner.setdefault(key, {})
    known = not any(_UNNAMED.search(path) for path in wanted)
    whole = frozenset(key for key in whole if not tree[key])
    kind = _struct(tree, whole, named=known)
    return _Reader(wanted, msgspec.json.Decoder(kind) if known else None, kind, tree, whole)


def _struct(tree: _Tree, whole: frozenset[str], *, named: bool) -> type[msgspec.Struct]:
    """A type with a field for each key, named by its place: the value's bytes, or a type of the keys in it.

    whole: keys that each object must have, with a whole number.
    """
    fields: list[tuple[str, object] | tuple[str, object, object]] = []
    for place, (key, inner) in enumerate(tree.items()):
        if inner:
            fields.append((f"f{place}", _struct(inner, frozenset(), named=named) | None, None))
        else:
            fields.append((f"f{place}", int) if key in whole else (f"f{place}", msgspec.Raw, _NOTHING))
    names = {f"f{place}": key for place, key in enumerate(tree) if named}
    return msgspec.defstruct("Values", fields, rename=names, gc=False, kw_only=True)


def _values(objects: list[msgspec.Struct], tree: _Tree, path: str) -> list[_Raw]:
    """The objects' values at a path; a key that contains dots is preferred."""
    values = _follow(objects, tree, [path])
    keys = path.split(".")
    if len(keys) > 1:
        values = [own if len(own) else inner for own, inner in zip(values, _follow(objects, tree, keys), strict=True)]
    return values


def _follow(objects: list[msgspec.Struct], tree: _Tree, keys: list[str]) -> list[_Raw]:
    *outer, last = keys
    values: list[object] = list(objects)
    for key in outer:
        get, tree = attrgetter(_name(tree, key)), tree[key]
        values = [None if value is None else get(value) for value in values]
    if tree[last]:  # where other keys are looked for within it, it is an object or null, or read by json
        return [_NOTHING] * len(objects)
    get = attrgetter(_name(tree, last))
    return [_NOTHING if value is None else get(value) for value in values] if outer else list(map(get, values))


def _name(tree: _Tree, key: str) -> str:
    return f"f{list(tree).index(key)}"


def _unescaped(data: bytes, starts: Ints, lengths: Ints) -> bytes:
    """The data with texts that had escapes, or line ends then, behind it; their starts and lengths are set."""
    escapes = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\\"))
    filled = np.flatnonzero(lengths > 0)
    which = np.searchsorted(starts[filled], escapes, side="right") - 1
    at = filled[which[which >= 0]]
    ends = starts + lengths
    at = np.unique(at[escapes[which >= 0] < ends[at]])
    more: list[bytes] = []
    place = len(data)
    for k in at.tolist():
        text = str(_DECODER.decode(data[starts[k] - 1 : ends[k] + 1].decode(errors="replace")))
        more.append(re.sub(r"[\r\n]+", " ", text).encode(errors="replace"))
        starts[k], lengths[k] = place, len(more[-1])
        place += len(more[-1])
    return b"".join([data, *more])


def check(line: bytes, more: Callable[[], bytes], source: Source, where: str) -> None:
    """Checks that one of the first lines has the event time, if the first is a JSON object.

    more: reads the first lines. Raises UserError, naming the keys of the first.
    """
    refuse_array(line, where)
    try:
        value = _DECODER.decode(line.decode())
    except _BROKEN:
        return  # bad lines are counted when all of them are read
    for path in map(str, source.time.parts):
        if not isinstance(value, dict) or _at(value, path) is not None:
            continue
        if Values(Lines(more()), [path]).field(0)[1].any():
            continue
        shown = ", ".join(repr(key[:60]) for key, _ in zip(keys(value), range(30), strict=False))
        raise UserError(f"{where}: line 1: source.time.column: no value at {path!r}; found {shown or 'no key'}")


def refuse_array(begin: bytes, where: str) -> None:
    """Raises UserError for a text that begins as an array of objects."""
    if re.match(rb"\s*\[\s*(\{|$)", begin):
        raise UserError(
            f"{where}: found a JSON array, allowed: JSON lines, an object a line; convert it, as by: "
            "jq -c '.[]' array.json > lines.jsonl"
        )


def keys(value: Mapping[str, object], before: str = "") -> Iterator[str]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from keys(inner, f"{before}{key}.")
        else:
            yield before + key


def _at(value: object, path: str, missing: object = None) -> object:
    """The value at a path, or `missing`. A key that contains dots is preferred."""
    for way in ([path], path.split(".")):
        inner = value
        for key in way:
            if not isinstance(inner, dict) or key not in inner:
                break
            inner = inner[key]
        else:
            return inner
    return missing
