"""Backends for metrics: one small class each, called by a thread of its own. `write` raises if it did not deliver."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from streamgauge.base import variables
from streamgauge.base.errors import UserError
from streamgauge.config.metrics import SINKS
from streamgauge.metrics.snapshot import Snapshot

if TYPE_CHECKING:
    from streamgauge.config import MetricsSink


@runtime_checkable
class Sink(Protocol):
    """A backend. name: for the log."""

    name: str

    def write(self, snapshot: Snapshot) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class Incomplete(Protocol):
    """A backend that lacks a place for some of counter, distribution, gauge and committed."""

    lacks: Collection[str]


@runtime_checkable
class Confidential(Protocol):
    """A backend with texts that must not get into a log."""

    secrets: Sequence[str]


def in_ascii(name: str, refused: re.Pattern[str]) -> str:
    """A name with _ for what a backend refuses; one that is not ASCII ends in its checksum, else many become one."""
    ending = "" if name.isascii() else f"-{zlib.crc32(name.encode()):08x}"
    return refused.sub("_", name) + ending


def make_sink(settings: MetricsSink, where: str) -> Sink:
    """Makes the sink that one entry of the configuration describes. Raises UserError if it cannot be made."""
    kind = SINKS.load(settings.type, f"{where}.type")
    if not callable(kind):
        raise UserError(f"{where}.type: {settings.type} is no class")
    given = {"url": settings.url, "options": settings.options}
    settings = settings.model_copy(update=variables.filled(given, where))
    try:
        made: object = kind(settings)
    except UserError as problem:
        raise UserError(f"{where}: {problem}") from None
    except (AttributeError, TypeError) as problem:
        raise UserError(f"{where}.type: {settings.type} cannot be made: {problem}") from None
    if not isinstance(made, Sink):
        raise UserError(f"{where}.type: {settings.type} is no sink; it needs name, write(snapshot) and close()")
    return made
