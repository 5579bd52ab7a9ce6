"""Options that several commands share, and what goes with them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic_core import from_json, to_json

from streamgauge.base.errors import UserError

if TYPE_CHECKING:
    from streamgauge.catalog.artifacts import Store

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
ConfigFile = Annotated[Path, typer.Argument(help="a benchmark file (YAML, or the JSON of the DEBS 2019 poster)")]
Artifacts = Annotated[
    Path,
    typer.Option(help="where artifacts are kept", envvar="STREAMGAUGE_ARTIFACTS", show_default="./artifacts"),
]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object and nothing else")]


def tell(line: str, facts: Mapping[str, object], as_json: bool) -> None:
    """Prints a command's line or lines, or the facts in them as one JSON object."""
    typer.echo(json.dumps(facts, default=str) if as_json else line)


def print_table(rows: Sequence[tuple[str, ...]], left: Collection[int] = ()) -> None:
    """Prints rows in columns, flush right but for those in `left`."""
    columns = max(map(len, rows))
    filled = [(*row, *[""] * (columns - len(row))) for row in rows]
    widths = [max(map(len, column)) for column in zip(*filled, strict=True)]
    for row in filled:
        cells = [
            text.ljust(width) if k in left else text.rjust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        typer.echo(f"  {'  '.join(cells)}".rstrip())


DEFAULT_ARTIFACTS = Path("artifacts")


def store_at(artifacts: Path) -> Store:
    """The store in that folder. Raises UserError if a file is where a folder belongs."""
    from streamgauge.catalog.artifacts import Store

    for folder in (artifacts, artifacts / "data", artifacts / "runs"):
        try:
            wrong = folder.exists() and not folder.is_dir()
        except OSError as problem:
            raise UserError(f"--artifacts {artifacts}: {folder} cannot be read: {problem.strerror}") from None
        if wrong:
            raise UserError(f"--artifacts {artifacts}: {folder} is a file, allowed: a folder, or a free name")
    return Store(artifacts)


def finite(value: object) -> Any:
    """Returns what JSON has of a value, which has neither NaN nor infinities: None stands for them."""
    return from_json(to_json(value, inf_nan_mode="null"))
