"""A runner of a hosted CI: its folder, its variables, and stand-ins for the commands that its scripts call."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

HEAD = "c0ffee" + "0" * 34
#: a command that keeps its arguments, one a line, and does what the test wrote
STAND_IN = '#!/bin/sh\nprintf "%s\\n" "$@" -- >> "$CALLS"\n'
#: what a Python does that makes an environment, and its pip
VENV = '[ "$1" = install ] || { mkdir -p "$3/bin" && ln -s "$0" "$3/bin/pip"; }'


@dataclass
class Runner:
    """A runner's folder and variables; stand-ins are the first commands on its path."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def has(self, command: str, does: str) -> None:
        file = self.folder / "bin" / command
        file.parent.mkdir(exist_ok=True)
        file.write_text(STAND_IN + does)
        file.chmod(0o755)

    def run(self, *command: str | Path, at: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        own = {name: str(self.folder / name.lower()) for name in ("CALLS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        environment = {**os.environ, "PATH": path, **own, **self.variables, **variables}
        return subprocess.run(
            [str(part) for part in command], cwd=self.folder / at, env=environment, capture_output=True, text=True
        )

    @property
    def calls(self) -> list[list[str]]:
        calls = self.read("calls").split("--\n")[:-1] if (self.folder / "calls").exists() else []
        return [call.splitlines() for call in calls]

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()
