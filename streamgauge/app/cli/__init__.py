"""The `streamgauge` command. The module of a command is imported, with its heavy parts, only when it is called."""

from __future__ import annotations

import codecs
import importlib
import locale
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from streamgauge import __version__
from streamgauge.app.cli import pages, usage, workplace
from streamgauge.app.cli.common import app
from streamgauge.base import printing
from streamgauge.base.errors import STOPPED, Outage, Stopped, UserError
from streamgauge.base.folders import telling_of_a_full_disk
from streamgauge.base.live import tell
from streamgauge.base.processes import stoppable
from streamgauge.base.shipped import missing_extra


def application(arguments: Sequence[str] = ()) -> typer.Typer:
    """Returns the application with the commands that these arguments need: all, unless they name one."""
    for module in pages.modules(arguments):
        importlib.import_module(f"{__name__}.{module}")
    pages.arrange(app)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="print results, warnings and errors, but no progress")
    ] = False,
) -> None:
    """Measure event streams: their disorder, exact reproducible streams from them, and what an engine carries."""
    workplace.silent = quiet
    logging.disable(logging.INFO if quiet else logging.NOTSET)


@app.command(hidden=True)
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def _use_utf8() -> None:
    """Starts Python anew in its UTF-8 mode if the locale has another encoding, as all files of ours are UTF-8."""
    if codecs.lookup(locale.getpreferredencoding(False)).name != "utf-8" and "PYTHONUTF8" not in os.environ:
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def main() -> None:
    """Runs the command. Each mistake of a user is reported in one line, exit code 2; an outage is 3, a signal 130."""
    code, lines = 0, list[str]()
    _use_utf8()
    printing.arrange()
    try:
        with stoppable(), telling_of_a_full_disk(Path(".")):
            command = usage.strict(typer.main.get_command(application(sys.argv[1:])))
            code = command(prog_name="streamgauge", standalone_mode=False) or 0
        lines = ["stopped"] if code == STOPPED else []  # Typer takes a signal that no command has taken
    except UserError as problem:
        code, lines = 2, problem.lines
    except Outage as problem:
        code, lines = 3, [str(problem)]
    except Stopped as problem:
        code, lines = STOPPED, [str(problem)]
    except ModuleNotFoundError as problem:
        if (extra := missing_extra(problem)) is None:
            raise
        code, lines = 2, [extra]
    except (KeyboardInterrupt, typer.Abort):  # the latter at a question
        code, lines = STOPPED, ["stopped"]
    except usage.Error as problem:
        # a command whose code 2 is an answer has another one for mistakes
        code, lines = max(2, getattr(problem, "exit_code", 2)), usage.lines_of(problem)
    for line in lines:
        tell(f"streamgauge: {line}", sys.stderr)
    sys.exit(code)
