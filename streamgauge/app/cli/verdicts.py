"""Commands whose exit codes are verdicts."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException

from streamgauge.base.errors import Outage, UserError
from streamgauge.base.folders import telling_of_a_full_disk
from streamgauge.base.processes import stoppable
from streamgauge.base.shipped import missing_extra

#: exit code if something kept the check from a verdict, such as a user's mistake
NO_VERDICT = 3


class VerdictCommand(TyperCommand):
    """A command whose exit codes 0, 1 and 2 are verdicts, so that every error ends it with NO_VERDICT instead."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().make_context(*args, **kwargs)
        except TyperException as problem:  # a wrong option would end with 2
            problem.exit_code = NO_VERDICT
            raise

    def invoke(self, ctx: Any) -> Any:
        try:
            with stoppable(), telling_of_a_full_disk(Path(".")):  # as in `main`, before the error is taken here
                return super().invoke(ctx)
        except UserError as problem:
            for line in problem.lines:
                print(f"streamgauge: {line}", file=sys.stderr)
        except Outage as problem:
            print(f"streamgauge: worth another try: {problem}", file=sys.stderr)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as problem:
            if isinstance(problem, ModuleNotFoundError) and (extra := missing_extra(problem)):
                print(f"streamgauge: {extra}", file=sys.stderr)
            else:
                traceback.print_exc()
        raise typer.Exit(NO_VERDICT)
