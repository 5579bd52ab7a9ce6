"""The benchmark of promises prints what docs/advise.md says, of its quickest stream."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.conftest import ROOT


def test_the_flights_of_january_are_those_of_the_page() -> None:
    command = [sys.executable, "-m", "benchmarks.promises", "--seeds", "1", "--only", "flights of January"]
    wide = os.environ | {"COLUMNS": "250"}
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=wide).stdout
    ((first, *cells),) = [
        [cell.strip() for cell in line.strip("│").split("│")] for line in printed.splitlines() if line.startswith("│")
    ]
    del cells[8]  # the median of the naive delay, which the page leaves out
    wanted = re.search(r"^\| flights of January \| (1 %.*) \|$", (ROOT / "docs" / "advise.md").read_text(), re.M)
    assert first == "flights of January"
    assert wanted is not None
    assert cells == wanted[1].split(" | ")
