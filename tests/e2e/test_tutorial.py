"""The tutorial, from its first command to the page: every block in order, in an empty folder, with real Spark."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.e2e.processes import COMMAND

PAGE = (ROOT / "docs" / "tutorial.md").read_text()
BLOCKS = [(kind, text) for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)]


def run(command: str, folder: Path) -> str:
    """Returns what a command of the page prints; it must succeed."""
    path = f"{Path(COMMAND).parent}:{os.environ['PATH']}"
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "STREAMGAUGE_ART"))
    }
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment | {"PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
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
    for kind, text in BLOCKS:
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
