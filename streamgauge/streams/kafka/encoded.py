"""Reads values of binary formats, or with a registry's prefix, as lines of JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamgauge.descriptions.schema_registry import Kind
from streamgauge.streams.kafka import avro
from streamgauge.streams.kafka.registry import PREFIX, Registry

#: turns a value into a line, and raises ValueError for one that is none
Read = Callable[[bytes], bytes]
#: bytes of a bad value that are shown
_SHOWN = 100


def on_one_line(value: bytes) -> bytes:
    """The value with a blank for each byte that ends a line."""
    return value.replace(b"\n", b" ").replace(b"\r", b" ")


class Encoded:
    """Values that a function reads one by one."""

    def __init__(self, read: Read) -> None:
        self._read = read

    def lines(self, values: Sequence[bytes]) -> tuple[list[bytes], dict[int, str]]:
        """Returns a line without its end for each value, and the reason for each value, by place, that is none.

        The line of such a value is what the quarantine shows of it.
        """
        lines, reasons, read = list[bytes](), dict[int, str](), self._read
        for at, value in enumerate(values):
            try:
                lines.append(read(value))
            except ValueError as problem:
                lines.append(value[:_SHOWN].hex().encode())
                reasons[at] = str(problem)
        return lines, reasons


class Prefixed:
    """Reads values that begin with the number of their writer's schema; each schema is asked for once."""

    def __init__(self, kind: Kind, registry: Registry) -> None:
        self._kind, self._registry = kind, registry
        self._reads: dict[int, Read] = {}

    def __call__(self, value: bytes) -> bytes:
        if len(value) < PREFIX.size or value[0]:
            raise ValueError("no prefix of a schema registry (a byte 0, and a schema's number in four)")
        if self._kind == "JSON":
            return on_one_line(value[PREFIX.size :])
        _, number = PREFIX.unpack_from(value)
        read = self._reads.get(number)
        if read is None:
            read = self._reads[number] = self._reader(number)
        return read(value[PREFIX.size :])

    def _reader(self, number: int) -> Read:
        schema = self._registry.schema(number)
        if schema is None:
            return _refusing(f"schema {number} is not in the registry")
        if schema.kind != self._kind:
            return _refusing(f"schema {number} is of type {schema.kind}, allowed: {self._kind}")
        try:
            return avro.reader(schema.text, schema.referenced)
        except ValueError as problem:
            return _refusing(f"schema {number}: {problem}")


def _refusing(reason: str) -> Read:
    def read(_: bytes) -> bytes:
        raise ValueError(reason)

    return read
