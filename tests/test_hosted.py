"""Checks what a hosted repository reads by its published schemas, and the commands that its workflow runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
HOSTED = ROOT / ".github"


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("vendor.github-workflows", "workflows/*.yml"),
        ("custom.github-workflows-require-timeout", "workflows/*.yml"),
        ("vendor.dependabot", "dependabot.yml"),
        ("vendor.github-issue-forms", "ISSUE_TEMPLATE/w*.yml"),
        ("vendor.github-issue-config", "ISSUE_TEMPLATE/config.yml"),
    ],
)
def test_files_are_of_their_schema(schema: str, pattern: str) -> None:
    files = sorted(HOSTED.glob(pattern))
    assert files
    program = Path(sys.executable).with_name("check-jsonschema")
    done = subprocess.run([program, "--builtin-schema", schema, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_workflow_runs_commands_of_the_makefile() -> None:
    jobs = yaml.safe_load((HOSTED / "workflows" / "ci.yml").read_text())["jobs"]
    lines = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    targets = [line.removeprefix("make ") for line in lines if line.startswith("make ")]
    assert targets == ["quick", "test"]
    assert all(f"\n{target}: " in (ROOT / "Makefile").read_text() for target in targets)
