"""Errors that are reported in one line: a user's mistake, with what was found and what to do, and an outage."""

from __future__ import annotations

from collections.abc import Sequence

from streamgauge.base.secrets import masked_message


class UserError(Exception):
    """A user's mistake: printed as one line, exit code 2, never with a stack trace."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(masked_message(message).split()))
        self.lines = [str(self)]


class Mistakes(UserError):
    """Several mistakes in one file or one set of options, each with a line of its own."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = [" ".join(masked_message(line).split()) for line in lines]

    def __reduce__(self) -> tuple[type[Mistakes], tuple[list[str]]]:
        return Mistakes, (self.lines,)


#: what to do about a damaged artifact
BUILT_AGAIN = "delete its folder, which is then built again"


class Damaged(UserError):
    """A file that this project wrote is not what was written."""

    def __init__(self, file: object, what: str, todo: str) -> None:
        super().__init__(f"{file}: {what}; {todo}")
        self.file, self.what, self.todo = file, what, todo

    def __reduce__(self) -> tuple[type[Damaged], tuple[object, str, str]]:
        return Damaged, (self.file, self.what, self.todo)


class Skipped(UserError):
    """A stage is left out, as one that it needs has not succeeded: no failure of its own."""


#: exit code of a command that a signal has ended
STOPPED = 130


class Stopped(Exception):
    """A signal asked the command to end. Printed as one line, exit code STOPPED."""


class Outage(Exception):
    """An engine or a disk failed during the work: not the user's mistake, and worth a retry. Exit code 3."""


class Infeasible(UserError):
    """A target that the data cannot reach with this seed."""
