"""Hostile input: a few draws of tests/hostile find no fault in the commands; it recognises each kind."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hostile.draw import Draw, Ended
from tests.hostile.judging import shortcomings

ROOT = Path(__file__).resolve().parents[2]
ANALYZE = Draw(["analyze", "f.csv", "--time", "t"])
REFUSED = Ended(code=2, out="", err="streamgauge: f.csv: no such file\n", seconds=0.1, bytes=1 << 20, left=[])


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_hostile_input_gets_one_line_and_leaves_nothing() -> None:
    command = [sys.executable, "-m", "tests.hostile", "--seed", "11", "--draws", "144"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "fell short: nothing"


@pytest.mark.parametrize(
    ("end", "says"),
    [
        (REFUSED, []),
        (replace(REFUSED, err="Traceback (most recent call last):\n"), ["a stack trace", "no line that says why"]),
        (replace(REFUSED, err="oh\n"), ["no line that says why"]),
        (replace(REFUSED, err=f"streamgauge: {'x' * 5000}\n"), ["a line of more than"]),
        (replace(REFUSED, out="3 events\n"), ["output beside the mistake"]),
        (replace(REFUSED, left=["tmp/scratch", "out"]), ["left behind: tmp/scratch, out"]),
        (replace(REFUSED, code=-9, seconds=61.0), ["killed by signal 9", "61 s"]),
        (replace(REFUSED, bytes=3 << 30), ["3072 MiB"]),
        (replace(REFUSED, left=["ran-module"], seen=["err"]), ["ran code", "shows what is hidden: err", "left"]),
    ],
)  # fmt: skip
def test_each_shortcoming_is_seen(end: Ended, says: list[str]) -> None:
    found = list(shortcomings(ANALYZE, end))
    assert len(found) == len(says)
    assert all(told.startswith(said) for told, said in zip(found, says, strict=True)), found


def test_an_answer_that_is_no_json_is_seen() -> None:
    draw, end = Draw(["analyze", "f.csv", "--json"]), Ended(0, '{"rate": NaN}', "", 0.1, 1, [])
    assert list(shortcomings(draw, end)) == ["no JSON"]
