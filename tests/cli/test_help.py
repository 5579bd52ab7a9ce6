"""The help of every command, as it is printed: tests/cli/help.txt.

After a change on purpose: UPDATE_HELP=1 pytest tests/cli/test_help.py, and read the difference.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from streamgauge.app import cli
from streamgauge.app.cli import pages
from tests.command import Call, run

GOLDEN = Path(__file__).with_name("help.txt")


def commands(command: Any, *names: str) -> Iterator[list[str]]:
    yield list(names)
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, *names, name)


ALL = list(commands(typer.main.get_command(cli.application())))


def command_of(names: list[str]) -> Any:
    command: Any = typer.main.get_command(cli.application())
    for name in names:
        command = command.commands[name]
    return command


def test_the_help_of_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERMINAL_WIDTH", "100")
    monkeypatch.setenv("COLUMNS", "100")
    parts = []
    for names in ALL:
        if names == ["driver"]:
            continue  # its own parser's, which differs between versions of Python
        answer = run(Call([*names, "--help"]))
        assert answer.code == 0, names
        parts.append("\n".join(line.rstrip() for line in answer.out.strip("\n").splitlines()))
    found = "\n\n".join(parts) + "\n"
    if os.environ.get("UPDATE_HELP"):
        GOLDEN.write_text(found)
    assert found == GOLDEN.read_text()


def test_every_command_has_a_heading() -> None:
    placed = {name for names in pages.PANELS.values() for name in names}
    assert placed | {"version"} == {names[0] for names in ALL if len(names) == 1}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in pages.EXAMPLES.items() for text in texts])
def test_examples_are_accepted(name: str, text: str) -> None:
    command_of([name]).make_context(name, shlex.split(text))


@pytest.mark.parametrize("names", ALL, ids=" ".join)
def test_every_option_is_described(names: list[str]) -> None:
    command = command_of(names)
    assert re.match(r"[A-Z].*\.", command.help or ""), names
    undescribed = [p.name for p in command.params if not getattr(p, "help", None)]
    assert undescribed == [], names
