"""The command as a user meets it: exit code, standard output, standard error."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pandas  # noqa: F401  -- a one-shot command keeps pyarrow from it, for this whole process, unless it is here

from streamgauge.app import cli


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output, which must be one JSON object and nothing else."""
        assert self.code == 0, self.err
        found = json.loads(self.out)
        assert isinstance(found, dict)
        assert self.out.count("\n") == 1
        return found

    def refused(self, *said: str) -> None:
        """Asserts one line that begins with streamgauge and contains all of these; no stack trace, no output."""
        lines = [line for line in self.err.splitlines() if line.startswith("streamgauge")]
        assert self.code not in (0, None), self.out
        assert len(lines) == 1, self.err
        assert all(part in lines[0] for part in said), lines[0]
        assert "Traceback" not in self.err
        assert self.out == ""


@dataclass
class Call:
    """A command, and what shall go on around it."""

    arguments: list[str]
    growing: str | None = None  # a file that somebody writes to all the time
    least_space: int | None = None  # instead of preflight's


def run(call: Call) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with _around(call), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            with mock.patch.object(sys, "argv", ["streamgauge", *call.arguments]):
                cli.main()
        except SystemExit as end:
            code = end.code or 0
    return Answer(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _around(call: Call) -> Iterator[None]:
    from streamgauge.catalog import preflight

    if call.least_space is not None:
        preflight.SPACE_LEAST = call.least_space
    done = threading.Event()

    def grow(path: Path) -> None:
        while not done.wait(0.002):
            with open(path, "a") as handle:
                handle.write("1\n")

    writer = threading.Thread(target=grow, args=(Path(call.growing),)) if call.growing else None
    if writer:
        writer.start()
    try:
        yield
    finally:
        done.set()
        if writer:
            writer.join()


if __name__ == "__main__":  # many calls in one process, so that one JVM serves them all
    answers = [run(Call(**call)) for call in json.load(sys.stdin)]
    json.dump([asdict(answer) for answer in answers], sys.stdout)
