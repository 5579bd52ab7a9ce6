"""The processes of one trial: the user's command, and the publisher that fills its input topic."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from streamgauge.base.errors import UserError
from streamgauge.base.processes import Child
from streamgauge.bench.engines.processes import Led
from streamgauge.bench.publish import publisher
from streamgauge.bench.publish.publisher import LinkFigures

_SHOWN, LAST_LINES = 300, 3
#: lines in which a stack trace is looked for: its reason is the last one that names an error, as Python and Java do
TRACE_LINES = 200
_ERROR = re.compile(r"(Caused by: |Exception in thread \S+ )?[\w.$]*(Error|Exception)\b")


class Command(Led):
    """The user's command in a process session of its own. Raises UserError, with its key, if it cannot be started."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], directory: Path, log: Path, key: str = "command"
    ) -> None:
        self.log, self.since = log, time.monotonic()
        log.parent.mkdir(parents=True, exist_ok=True)
        self._begin = log.stat().st_size if log.exists() else 0  # what an earlier process printed, which was killed
        # a program is looked for where it runs; a script of its own name would else hide one on PATH
        program = directory / command[0] if "/" in command[0] else Path(command[0])
        try:
            super().__init__([str(program), *command[1:]], {**os.environ, **environment}, log, directory)
        except OSError as problem:
            raise UserError(f"{key}: {command[0]} cannot be started in {directory}: {problem.strerror}") from None

    def last_line(self) -> str:
        """The last error that it named; else the last line of its output that begins at the margin."""
        lines = [line.rstrip() for line in self.output().splitlines() if line.strip()]
        named = [line for line in lines[-TRACE_LINES:] if _ERROR.match(line)]
        shown = named or [line for line in lines if not line[0].isspace()] or lines
        return shown[-1][:_SHOWN] if shown else "it printed nothing"

    def last_words(self) -> str:
        """Returns its last lines and the place of its whole log, in one line."""
        lines = [line.strip()[:_SHOWN] for line in self.output().splitlines() if line.strip()][-LAST_LINES:]
        return f"{'its last lines: ' + ' | '.join(lines) if lines else 'it printed nothing'}; its log: {self.log}"

    def output(self) -> str:
        """The end of its output."""
        with open(self.log, "rb") as log:
            log.seek(max(self._begin, os.fstat(log.fileno()).st_size - 65_536))
            return log.read().decode(errors="replace")


class Publishing:
    """The process of a publisher; a thread keeps the last line that it printed.

    module: what runs there, and gets the task.
    """

    def __init__(self, task: str, module: str = publisher.__name__) -> None:
        self._process = Child(module, task=task)
        self._last: dict[str, Any] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def published(self) -> list[int]:
        """Rows of each queue that were handed to the producer."""
        return list(self._last.get("published", []))

    @property
    def filled(self) -> bool:
        """True once it has handed on the backlog with which the trial began."""
        return bool(self._last.get("filled", True))

    def failure(self) -> str | None:
        """Reason of its end in one line; None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        return f"the publisher ended with {code}: {self._process.last_error()}"

    def end(self) -> LinkFigures:
        """Lets it end; returns its figures, {} if it had to be killed."""
        with self._process as process:
            try:
                assert process.stdin is not None
                process.stdin.close()
                code = process.wait(10.0)
                self._reader.join(5.0)
                return cast("LinkFigures", self._last) if code == 0 else {}
            except (OSError, subprocess.TimeoutExpired):
                return {}
            finally:
                process.kill()

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                self._last = json.loads(line)
        except ValueError:
            return  # closed, or cut in the middle of a line
