"""The tutorial, from its first command to the page: every block in order, in an empty folder, with real Spark."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.e2e.processes import COMMAND


def blocks(page: str, heading: str = "") -> list[tuple[str, str]]:
    """Returns kind and text of each block of a page, or of one of its sections."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    if heading:
        text = re.split(r"^#{2,3} ", text.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    every = re.findall(r"^( *)```(\w*)\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    return [(kind, textwrap.dedent(block)) for _, kind, block in every]


def run(command: str, folder: Path, code: int = 0) -> str:
    """Returns what the commands of a block print; the last one ends with that code, and all before succeed."""
    path = f"{Path(COMMAND).parent}:{os.environ['PATH']}"
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "STREAMGAUGE_ART"))
    }
    done = subprocess.run(
        ["bash", "-e", "-c", command], cwd=folder, env=environment | {"PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pattern(shown: str) -> str:
    """Pattern of an output as the page shows it: … stands for anything, alone on a line also for several lines."""
    parts = [
        r"(?:.*\n)*?" if line == "…" else "[^\n]*".join(map(re.escape, line.split("…"))) + r"\s*?\n"
        for line in shown.splitlines()
    ]
    return r"(?:.*\n)*?" + "".join(parts) + r"(?:.*\n)*"


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_every_block_of_the_tutorial_does_what_the_page_says(tmp_path: Path) -> None:
    said, commands = "", []
    for kind, text in blocks("tutorial"):
        if kind == "python":  # a file, which its first line names
            (tmp_path / text.splitlines()[0].removeprefix("# ")).write_text(text)
            continue
        command, shown = ("", text) if kind == "text" else text.removeprefix("$ ").split("\n", 1)
        if command:
            said = run(command, tmp_path)
            commands += [word for word in command.split()[1:2] if command.startswith("streamgauge")]
        assert re.fullmatch(pattern(shown), said), f"{command} printed\n{said}\nand the page says\n{shown}"
    assert commands == ["analyze", "advise", "generate", "init", "check", "run"]
    [page] = tmp_path.glob("artifacts/runs/*/index.html")
    assert "late20" in page.read_text()
