"""Runs the commands that stand in `console` blocks of the documentation, and compares what they print.

In a block, a line `$ command` is run, and the lines below it are what it prints. A line `…` stands for any lines.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import Call, run

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """Yields each command with the lines that it shall print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *printed = part.splitlines()
        yield command, printed


def matches(printed: list[str], wanted: list[str]) -> bool:
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else re.escape(line) + r"\n" for line in wanted)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


WITH_OUTPUT = [page for page in PAGES if blocks(page, "console")]


@pytest.mark.parametrize("page", WITH_OUTPUT, ids=lambda page: page.stem)
def test_a_page_s_commands_print_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for script in blocks(page, "python"):
        name = re.match(r"# (\w+)\.py\n", script)
        if name:
            made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
            [target] = re.findall(rf"python3 {name[1]}.py > (\S+)", page.read_text())
            (tmp_path / target).write_text(made)
    for block in blocks(page, "console"):
        for command, wanted in commands(block):
            program, *arguments = shlex.split(command)
            assert program == "streamgauge"
            answer = run(Call(arguments))
            assert answer.code == 0, answer.err
            printed = [line.rstrip() for line in answer.out.splitlines()]
            assert matches(printed, wanted), f"{command} prints:\n{answer.out}"


@pytest.mark.parametrize(
    ("printed", "wanted", "same"),
    [
        (["a", "b"], ["a", "b"], True), (["a", "b"], ["a"], False), (["a", "b", "c"], ["a", "…", "c"], True),
        (["a", "c"], ["a", "…", "c"], True), (["a", "b", "c"], ["…", "c"], True), (["a", "b"], ["a", "…"], True),
        (["ab", "c"], ["…", "b", "c"], False), (["a", "b", "c"], ["a", "…", "d"], False),
    ],
)  # fmt: skip
def test_dots_stand_for_any_lines(printed: list[str], wanted: list[str], same: bool) -> None:
    assert matches(printed, wanted) is same
