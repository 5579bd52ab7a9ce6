"""Builds a checkout by the command of the benchmark file, in a process session of its own."""

from __future__ import annotations

import logging
import os
import subprocess
import time
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.base.processes import Leader, stop

#: lines of its output that are shown of a build that failed, and characters of each
_LINES, _LONGEST = 3, 200
log = logging.getLogger("streamgauge")


def build(command: str, checkout: Path, name: str, output: Path, timeout_s: float) -> float:
    """Builds a checkout; returns the seconds that it took. name: of its side. output: file for what it prints.

    Raises UserError with its last lines if it fails, or takes too long.
    """
    began = time.monotonic()
    output.unlink(missing_ok=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    leader = Leader(["/bin/sh", "-c", command], environment, output, checkout)
    try:
        code = leader.wait(timeout_s)
    except subprocess.TimeoutExpired:
        raise UserError(
            f"gate.build: {name}: took longer than gate.build_timeout, {timeout_s:g} s; its output: {output}"
        ) from None
    finally:
        stop(leader, grace_seconds=2.0)
    if code:
        text = output.read_text(encoding="utf-8", errors="replace")
        lines = [line.strip()[:_LONGEST] for line in text.splitlines() if line.strip()]
        said = f"its last lines: {' | '.join(lines[-_LINES:])}" if lines else "it printed nothing"
        raise UserError(f"gate.build: {name}: {command!r} ended with {code}; {said}; its output: {output}")
    log.info("built %s in %.0f s", name, time.monotonic() - began)
    return time.monotonic() - began
