"""Tells in one line which option or argument of a command is wrong, and where its help is."""

from __future__ import annotations

import re

import typer

#: what Typer raises for an unknown option, a missing argument, a value of the wrong type
Error: type[Exception] = typer.BadParameter.__mro__[1]
#: how Pydantic, by which Typer reads values, says that a number is none
_PARSED = re.compile(r"Input should be an? valid (number|integer), unable to parse.*")


def told(problem: Exception) -> list[str]:
    """Returns the line; none if the problem is only that no command was given, as the help was printed then."""
    context = getattr(problem, "ctx", None)
    command = context.command_path.partition(" ")[2] if context is not None else ""
    message = " ".join(problem.format_message().split()).rstrip(".")  # type: ignore[attr-defined]
    if not message:
        return []
    message = _PARSED.sub(r"allowed: a \1", message)
    before = f"{command}: " if command else ""
    after = f"; see {context.command_path} --help" if context is not None else ""
    return [f"{before}{message[0].lower()}{message[1:]}{after}"]
