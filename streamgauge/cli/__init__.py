"""The `streamgauge` command. Each module of commands imports its heavy parts only when a command is called."""

from __future__ import annotations

import sys

import typer

from streamgauge import __version__
from streamgauge.base.errors import Outage, UserError
from streamgauge.base.processes import stoppable
from streamgauge.cli import hard, judging, measuring, nexmark, planning, releasing, results, streams

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Measure event streams: their disorder, exact reproducible streams from them, and what an engine carries.",
)
for module in (planning, streams, measuring, judging, results, hard, nexmark, releasing):
    module.register(app)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def main() -> None:
    """Runs the command. A user's mistake is reported in one line, exit code 2; an outage is 3, a signal 130."""
    try:
        with stoppable():
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
