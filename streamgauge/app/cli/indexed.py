"""Options of the commands that read the index of results, and how they open it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamgauge.base.errors import UserError
from streamgauge.catalog.results import MEASURED

if TYPE_CHECKING:
    from streamgauge.results.index import Index

Database = Annotated[
    str | None,
    typer.Option(
        help="sqlite:///FILE or postgresql://host/name",
        envvar="STREAMGAUGE_DATABASE",
        show_default="results.db in the artifacts",
    ),
]
Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--where", help="NAME=VALUE: benchmark, experiment, workload, system, mode, metric, unit, key, run_id"
    ),
]
Since = Annotated[
    str | None, typer.Option(help="only points from this moment on: ISO-8601, UTC unless it has an offset")
]

_FILTERS = (*MEASURED, "key", "run_id")
_FILE = "sqlite:///"


def index_at(artifacts: Path, database: str | None) -> Index:
    from streamgauge.results.index import Index, default_url

    return Index(database or default_url(artifacts))


def existing(artifacts: Path, database: str | None) -> Index:
    """Opens the index for reading and creates nothing: without a database among the artifacts there are no results."""
    from streamgauge.results.index import Index, default_url

    url = database or default_url(artifacts)
    if database is None and url.startswith(_FILE) and not Path(url.removeprefix(_FILE)).exists():
        return Index("sqlite://")
    return Index(url, make=False)


def moment_of(text: str | None, option: str = "--since") -> str | None:
    """Converts an option's text to the form of times in the index: UTC, ISO-8601, whole seconds. Raises UserError."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"{option}: found {text!r}, allowed: a moment such as 2026-03-21 or 2026-03-21T02:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")


def filters_of(where: list[str] | None) -> dict[str, Any]:
    pairs = [text.partition("=") for text in where or []]
    for name, sign, _ in pairs:
        if not sign:
            raise UserError(f"--where: found {name!r}, allowed: NAME=VALUE")
        if name.strip() not in _FILTERS:
            raise UserError(f"--where: found {name.strip()!r}, allowed: {', '.join(_FILTERS)}")
    return {name.strip(): value.strip() for name, _, value in pairs}
