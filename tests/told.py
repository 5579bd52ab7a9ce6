"""Figures of a trial that may be missing, and those that an adapter tells beyond what is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamgauge.records.trial import Compared, Details, EngineBatch, SystemFigures


def compared(details: Details) -> Compared:
    """The comparison of the trial's output, which was made."""
    check = details["system"].get("check")
    assert check is not None
    return check


def more(figures: Mapping[str, object], name: str) -> Any:
    """A figure that no adapter has to tell, and this one does."""
    return figures[name]


def batches(figures: SystemFigures) -> list[EngineBatch]:
    """The engine's own account of its micro-batches, which it keeps."""
    told = figures.get("batches")
    assert told is not None
    return told
