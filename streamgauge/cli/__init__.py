"""The `streamgauge` command. Each module of commands imports its heavy parts only when a command is called."""

from __future__ import annotations

import sys

import typer

from streamgauge import __version__
from streamgauge.cli import hard, judging, keeping, measuring, nexmark, oneshot, planning, releasing
from streamgauge.errors import Outage, UserError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Measure event streams: their disorder, exact reproducible streams from them, and what an engine carries.",
)
for room in (planning, oneshot, measuring, judging, keeping, hard, nexmark, releasing):
    room.register(app)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def main() -> None:
    """Runs the command. A user's mistake is reported in one line, exit code 2; an outage is 3, Ctrl-C 130."""
    try:
        app()
    except UserError as problem:
        print(f"streamgauge: {problem}", file=sys.stderr)
        sys.exit(2)
    except Outage as problem:
        print(f"streamgauge: {problem}", file=sys.stderr)
        sys.exit(3)
    except KeyboardInterrupt:
        print("streamgauge: stopped", file=sys.stderr)
        sys.exit(130)
