"""Counts the bad lines of a source by reason, and writes them to a file for a person to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from streamgauge.base.errors import UserError
from streamgauge.base.parquet import parquet_file
from streamgauge.base.places import as_user_error, publishing
from streamgauge.catalog.artifacts import Artifact
from streamgauge.records.manifests import EventsManifest

_ROWS = 10_000


def require_outside(out: Path, stream: Path) -> None:
    """Raises UserError if the file lies in the folder that the stream will be."""
    if "://" not in str(stream) and out.absolute().is_relative_to(stream.absolute()):
        raise UserError(f"--quarantine {out}: lies in --out {stream}; name a file elsewhere")


def counted(events: Artifact) -> dict[str, int]:
    """Number of lines by reason, most frequent first."""
    if not events.read(EventsManifest).quarantined:
        return {}
    reasons: Counter[str] = Counter()
    for batch in _file(events).iter_batches(_ROWS, columns=["reason"]):
        reasons.update(batch.column("reason").to_pylist())
    return dict(reasons.most_common())


@contextmanager
def writing(events: Artifact, out: Path) -> Iterator[None]:
    """Writes the lines as they are, or as a table if the name ends in .parquet. Raises UserError.

    The file takes its name when the block has ended without an error.
    """
    source = _file(events)
    try:
        with publishing(out) as (_, sink):
            if out.suffix == ".parquet":
                pq.write_table(source.read(["file", "line_number", "reason", "text"]), sink)
            else:
                for batch in source.iter_batches(_ROWS, columns=["text"]):
                    sink.write(b"".join(text + b"\n" for text in batch.column("text").to_pylist()))
            yield
    except OSError as problem:
        raise as_user_error(problem, out) from None


def _file(events: Artifact) -> pq.ParquetFile:
    return parquet_file(events.file(events.read(EventsManifest).quarantine_file))
