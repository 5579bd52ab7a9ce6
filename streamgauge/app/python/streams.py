"""Profiles and streams from event files, as the commands analyze and generate make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypedDict, Unpack

from streamgauge import config
from streamgauge.app.cli import advise as command
from streamgauge.app.cli import event_files, source_options
from streamgauge.app.cli.event_files import Generated, Measured
from streamgauge.app.cli.source_options import Reading
from streamgauge.base.errors import UserError
from streamgauge.records.advice import Advice

Files = str | Path | Sequence[str | Path]


class Options(TypedDict, total=False):
    """Options of the command advise that say what a job answers, and what it may lose."""

    window: str
    slide: str
    session: str
    join: str
    event: bool
    left: str
    key: str
    value: str
    lost: str
    windows_wrong: str
    allowed_lateness: str


def analyze(
    files: Files, reading: Reading | None = None, *, full: bool = False, by: str | None = None, idle: str | None = None
) -> Measured:
    """Measures how disordered event files are; its doubts say where they may be read wrongly. Raises UserError.

    reading: how they are read. full: also inversions, distance and interleaved runs. by: a column, such as a device,
    each of whose values is also measured alone. idle: the shortest spell without an event of a value, such as "1m".
    """
    return event_files.measured(source_options.with_parts(_source(files, reading), by, idle), full=full)


def advise(
    files: Files,
    reading: Reading | None = None,
    *,
    delays: Sequence[str] = (),
    by: str | None = None,
    idle: str | None = None,
    **asked: Unpack[Options],
) -> Advice:
    """Says how long a job shall wait for late events, as the command advise does. Raises UserError.

    delays: those that the curve must have, such as "90s". The other options are those of the command, such as
    window="1h", lost="1%".
    """
    source = source_options.with_parts(_source(files, reading), by, idle)
    return command.advised(source, command.Asked(**asked), delays)


def generate(
    files: Files,
    reading: Reading | None = None,
    *,
    target_percent: float,
    seed: int,
    out: str | Path,
    delay: Mapping[str, object] | None = None,
    columns: str | None = None,
) -> Generated:
    """Generates a stream with exactly that part of the events out of order, in a new folder. Raises UserError.

    delay: keys of `delay` as in a benchmark file, such as {"max": "2h"}. columns: those to keep, as in the command.
    """
    raw = {"name": "stream", "target_percent": target_percent, "seed": seed, "delay": dict(delay or {})}
    experiment = config.parse(config.Experiment, raw, "generate")
    source = source_options.with_columns(_source(files, reading), columns)
    return event_files.streamed(source, experiment, Path(out))


def _source(files: Files, reading: Reading | None) -> config.Source:
    with suppress(ImportError):
        import pandas  # noqa: F401  -- the command keeps it from pyarrow for as long as its process lives
    names = [files] if isinstance(files, str | Path) else files
    if not names:
        raise UserError("files: found none, allowed: one or more event files")
    return source_options.source([str(name) for name in names], reading or Reading())
