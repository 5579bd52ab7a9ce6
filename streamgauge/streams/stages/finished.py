"""Pieces of events that are finished before all are: a builder that follows a killed one does not make them again."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from streamgauge.base.errors import Damaged
from streamgauge.base.folders import temporary_folder
from streamgauge.records.manifests import FinishedPiece
from streamgauge.streams.disorder.hints import NONE_SKIPPED, Place, Skipped

_RECORD = "piece.json"


@dataclass(frozen=True)
class Wrote:
    """Names of the files that a task has written, or their paths where they lie in another folder than the events'."""

    parts: list[str]
    quarantine: list[str]
    lines: int = 0
    place: Place | None = None
    skipped: Skipped = NONE_SKIPPED


def in_folder(kept: Path, name: str, write: Callable[[Path], Wrote]) -> Wrote:
    """Returns what `write` has written into a folder of that name, before or now; the folder appears when it is whole.

    Paths are absolute.
    """
    folder = kept / name
    if (earlier := _written(folder)) is not None:
        return earlier
    shutil.rmtree(folder, ignore_errors=True)
    scratch = kept / f".{name}-{uuid.uuid4().hex[:8]}"
    with temporary_folder(scratch):
        wrote = write(scratch)
        FinishedPiece(
            parts=tuple(wrote.parts),
            quarantine=tuple(wrote.quarantine),
            lines=wrote.lines,
            skipped_events=wrote.skipped.events,
            skipped_seqs=wrote.skipped.seqs,
        ).write(scratch / _RECORD)
        try:
            scratch.rename(folder)
        except OSError:  # a task of the killed builder, or a second attempt at this one, was sooner
            if (sooner := _written(folder)) is None:
                raise
            return sooner
    return _in(folder, wrote)


def _written(folder: Path) -> Wrote | None:
    """Returns what an earlier builder has written there; None if it is not whole."""
    try:
        piece = FinishedPiece.read(folder / _RECORD)
    except (OSError, Damaged):
        return None
    if not all((folder / name).exists() for name in (*piece.parts, *piece.quarantine)):
        return None
    skipped = Skipped(piece.skipped_events, piece.skipped_seqs)
    return _in(folder, Wrote(list(piece.parts), list(piece.quarantine), piece.lines, skipped=skipped))


def _in(folder: Path, wrote: Wrote) -> Wrote:
    parts, quarantine = ([str(folder / name) for name in names] for names in (wrote.parts, wrote.quarantine))
    return replace(wrote, parts=parts, quarantine=quarantine)
