"""The log of one run (which stages ran, with what outcome) in append-only JSON lines, and its environment."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from streamgauge.base.errors import Outage, Skipped, UserError
from streamgauge.base.folders import telling_of_a_full_disk
from streamgauge.base.jsonl import append_json, read_jsonl
from streamgauge.base.secrets import masked_message


@dataclass(frozen=True)
class StageRecord:
    """Record of an attempt at a stage. state: done, failed, skipped, or started (running, or
    killed).

    cause of a failure: "mistake" of the user, which no retry mends; "outage", which one may; "fault" of anything else.
    """

    stage: str
    scope: dict[str, str]  # experiment, workload, system: whichever it has
    attempt: str
    state: str
    started_at: str
    seconds: float | None
    outcome: dict[str, Any]
    error: str | None
    cause: str | None = None


class RunLog:
    """stages.jsonl of one run directory; one writer per stage attempt, readers at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path / "stages.jsonl"

    @contextmanager
    def stage(self, stage: str, scope: dict[str, str]) -> Iterator[dict[str, Any]]:
        """Records that a stage started, then that it is done or why it failed; the block fills the yielded outcome."""
        base = {"stage": stage, "scope": scope, "attempt": _attempt()}
        with telling_of_a_full_disk(self.path):
            append_json(self._file, {**base, "state": "started", "at": _now()})
            begin = time.monotonic()
            outcome: dict[str, Any] = {}
            try:
                with telling_of_a_full_disk(self.path):
                    yield outcome
            except BaseException as problem:
                state = "skipped" if isinstance(problem, Skipped) else "failed"
                with suppress(OSError):  # a full disk may have no room for this either; the problem itself counts
                    append_json(
                        self._file,
                        {**base, "state": state, "at": _now(), "seconds": round(time.monotonic() - begin, 3),
                         "outcome": outcome, **_reason(problem)},
                    )  # fmt: skip
                raise
            append_json(
                self._file,
                {**base, "state": "done", "at": _now(), "seconds": round(time.monotonic() - begin, 3),
                 "outcome": outcome, "environment": environment()},
            )  # fmt: skip

    def failed(self, stage: str, scope: dict[str, str], problem: Exception, attempt: str | None = None) -> None:
        """Records a failure of which the stage itself could tell nothing: it did not begin, or `attempt` was killed."""
        base = {"stage": stage, "scope": scope, "attempt": attempt or _attempt()}
        with telling_of_a_full_disk(self.path):
            append_json(self._file, {**base, "state": "failed", "at": _now(), "outcome": {}, **_reason(problem)})

    def stages(self) -> list[StageRecord]:
        """Attempts at all stages in order of their start, each in its latest state."""
        attempts: dict[str, StageRecord] = {}
        for record in read_jsonl(self._file):
            before = attempts.get(record["attempt"])
            attempts[record["attempt"]] = StageRecord(
                stage=record["stage"],
                scope=record["scope"],
                attempt=record["attempt"],
                state=record["state"],
                started_at=before.started_at if before else record["at"],
                seconds=record.get("seconds"),
                outcome=record.get("outcome", {}),
                error=record.get("error"),
                cause=record.get("cause"),
            )
        return list(attempts.values())

    def latest(self, stage: str, **scope: str) -> StageRecord | None:
        """The last attempt at a stage with exactly that scope; None without one."""
        matching = [s for s in self.stages() if s.stage == stage and s.scope == scope]
        return matching[-1] if matching else None


def _attempt() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{time.time_ns()}"


def _reason(problem: BaseException) -> dict[str, str]:
    if isinstance(problem, UserError):
        return {"error": str(problem)[:2000], "cause": "mistake"}
    cause = "outage" if isinstance(problem, Outage) else "fault"
    return {"error": masked_message(f"{type(problem).__name__}: {problem}")[:2000], "cause": cause}


#: environment variable: a label of this host, which keeps its series apart from those of hosts of the same kind
HOST = "STREAMGAUGE_HOST"


def environment() -> dict[str, Any]:
    """Description of the machine and the software versions, as recorded with every figure."""
    return {
        "machine": {
            **({"host": label} if (label := os.environ.get(HOST, "").strip()) else {}),
            "cpu": _cpu_model(),
            "cores": os.cpu_count(),
            "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
            "os": f"{platform.system()} {platform.release()}",
        },
        "software": {
            "streamgauge": _installed("streamgauge"),
            "commit": commit(),
            "python": platform.python_version(),
            "java": _java(),
            "spark": _installed("pyspark"),
            "airflow": _installed("apache-airflow"),
            "great_expectations": _installed("great-expectations"),
            "numpy": _installed("numpy"),
            "pyarrow": _installed("pyarrow"),
        },
    }


@cache
def _installed(name: str) -> str | None:
    """Version of a package; None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


@cache
def commit() -> str | None:
    """Git commit of this checkout; "+" is appended if it has changes; None outside git."""
    place, name = str(Path(__file__).parent), Path(__file__).name
    try:  # an installed package may lie within somebody else's repository
        subprocess.run(["git", "-C", place, "ls-files", "--error-unmatch", name], capture_output=True, check=True)
        head = subprocess.run(["git", "-C", place, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run(["git", "-C", place, "diff", "--quiet", "HEAD"], capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + ("+" if changed.returncode else "")


def _cpu_model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    if model := re.search(r"^model name\s*:\s*(.+)", text, re.MULTILINE):
        return model[1].strip()
    # ARM gives numbers instead of a name
    numbers = dict(re.findall(r"^CPU (implementer|part|variant|revision)\s*:\s*(\S+)", text, re.MULTILINE))
    return " ".join([platform.processor() or platform.machine(), *numbers.values()])


def _java() -> str | None:
    """Java's version, from the JDK's `release` file so that Java need not start; None if it is unknown."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    try:
        release = (Path(java).resolve().parents[1] / "release").read_text() if java else ""
    except OSError:
        return None
    version = re.search(r'^JAVA_VERSION="(.+)"$', release, re.MULTILINE)
    return version[1] if version else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def known_run(runs: Sequence[Path], name: str) -> Path:
    """Directory of the run of that name. Raises UserError if there is none: a mistyped name must not create a run."""
    for run in runs:
        if run.name == name:
            return run
    known = ", ".join(run.name for run in runs[-5:]) or "none yet; `streamgauge run` makes one"
    raise UserError(f"run: found {name[:80]!r}, allowed: an existing run ({known})")
