"""Figures of a trial that may be missing, and those that an adapter tells beyond what is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from streamgauge.records.trial import Compared, Details, EngineBatch, SystemFigures

Value = TypeVar("Value")


def known(value: Value | None) -> Value:
    """The value, which is not missing."""
    assert value is not None
    return value


def compared(details: Details) -> Compared:
    """The comparison of the trial's output, which was made."""
    return known(details["system"]["check"])


def batches(figures: SystemFigures) -> list[EngineBatch]:
    """The engine's own account of its micro-batches, which it keeps."""
    return known(figures["batches"])


def extra(figures: Mapping[str, object], name: str) -> Any:
    """A figure that no adapter has to tell, and this one does."""
    return figures[name]
