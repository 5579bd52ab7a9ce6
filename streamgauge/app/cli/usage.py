"""Refuses malformed numbers, and says in one line which option is wrong and where its command's help is."""

from __future__ import annotations

import re
from typing import Any

import typer

#: what Typer raises for an unknown option, a missing argument, a value of the wrong type
Error: type[Exception] = typer.BadParameter.__mro__[1]
_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def strict(command: Any) -> Any:
    """Returns the command with numeric options that refuse the forms 1_0, nan and inf, which Python takes."""
    for parameter in command.params:
        if parameter.type_descriptor.annotation is int:
            _make_strict(parameter, _WHOLE, "a whole number")
        elif parameter.type_descriptor.annotation in (float, list[float]):
            _make_strict(parameter, _NUMBER, "a number")
    for inner in getattr(command, "commands", {}).values():
        strict(inner)
    return command


def _make_strict(parameter: Any, allowed: re.Pattern[str], name: str) -> None:
    process = parameter.process_value

    def checked(context: Any, value: Any) -> Any:
        for text in value if isinstance(value, list | tuple) else [value]:
            if isinstance(text, str) and not allowed.fullmatch(text):
                raise typer.BadParameter(f"found {text[:40]!r}, allowed: {name}", ctx=context, param=parameter)
        return process(context, value)

    parameter.process_value = checked


def percent_or_source(text: str) -> float | str:
    """Parses the option --target."""
    if text != "source" and not _NUMBER.fullmatch(text):
        raise typer.BadParameter(f"found {text[:40]!r}, allowed: a number, or source")
    return text if text == "source" else float(text)


def lines_of(problem: Exception) -> list[str]:
    """Returns the line; none if the problem is only that no command was given, as the help was printed then."""
    context = getattr(problem, "ctx", None)
    command = context.command_path.partition(" ")[2] if context is not None else ""
    message = " ".join(problem.format_message().split()).rstrip(".")  # type: ignore[attr-defined]
    if not message:
        return []
    before = f"{command}: " if command else ""
    after = f"; see {context.command_path} --help" if context is not None else ""
    return [f"{before}{message[0].lower()}{message[1:]}{after}"]
