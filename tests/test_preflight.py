"""Needs of `make setup` and `make test`: they are checked first, and one line says what is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOUND = {"java": "echo 'openjdk version \"17.0.9\"'", "javac": "echo javac 17.0.9", "curl": ""}


def said(folder: Path, tools: dict[str, str], *more: str) -> str:
    """Output of the check where only these tools are installed, as scripts."""
    for name in ("sed", "head", "df", "awk"):
        (folder / name).symlink_to(f"/usr/bin/{name}")
    for name, script in tools.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    command = ["/bin/sh", "scripts/preflight.sh", sys.executable, *more]
    done = subprocess.run(command, cwd=ROOT, env={"PATH": str(folder)}, capture_output=True, text=True)
    assert bool(done.returncode) == bool(done.stderr)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("changed", "more", "says"),
    [
        ({}, ["test"], ""),
        ({"javac": None, "curl": None}, [], ""),
        ({"java": None}, [], "Java: found none, allowed: 17 or newer; install a JDK or set JAVA_HOME"),
        ({"java": "echo 'java version \"1.8.0_1\"'"}, [], "Java: found 8, allowed: 17 or newer; set JAVA_HOME"),
        ({"javac": None}, ["test"], r"JDK: found no javac on PATH, allowed: a JDK, 17 or newer, not a JRE alone .*"),
        ({"javac": "echo javac 11.0.2"}, ["test"], "JDK: found javac 11, allowed: 17 or newer"),
        ({"curl": None}, ["test"], r"download of Kafka: found neither mvn nor curl on PATH, allowed: one of them .*"),
        ({"curl": None, "mvn": ""}, ["test"], ""),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    tmp_path: Path, changed: dict[str, str | None], more: list[str], says: str
) -> None:
    tools = {name: script for name, script in {**SOUND, **changed}.items() if script is not None}
    assert re.fullmatch(f"streamgauge: {says}\n" if says else "", said(tmp_path, tools, *more))


def test_make_test_prepares_all_that_its_tests_use() -> None:
    plan = subprocess.run(["make", "--dry-run", "test"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    steps = ["preflight.sh", "flink.sh", "jvm-link.sh", "kafka.sh", "ruff check", "pytest -q -n 3 --dist loadfile"]
    places = [plan.index(step) for step in steps]
    assert places == sorted(places)
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "exec make test"


def test_each_test_is_run_by_make_test_or_by_make_prove() -> None:
    def selections(target: str) -> list[str]:
        plan = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True)
        return re.findall(r"""pytest.* -m "?(.+?)"?$""", plan.stdout, re.MULTILINE)

    assert selections("test") == ["not alone and not prove", "alone and not prove"]
    assert selections("prove") == ["prove"]
