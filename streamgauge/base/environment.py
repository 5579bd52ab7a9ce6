"""The machine and the software versions, as they are recorded with every figure."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

#: environment variable: a label of this host, which keeps its series apart from those of hosts of the same kind
HOST = "STREAMGAUGE_HOST"

Machine = dict[str, str | int | float | None]
Software = dict[str, str | None]


@dataclass(frozen=True)
class Environment:
    """Facts of the machine, and versions of the software, None for what is not installed."""

    machine: Machine
    software: Software


def environment() -> Environment:
    return Environment(
        {
            **({"host": label} if (label := os.environ.get(HOST, "").strip()) else {}),
            "cpu": _cpu_model(),
            "cores": os.cpu_count(),
            "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
            "os": f"{platform.system()} {platform.release()}",
        },
        {
            "streamgauge": version_of("streamgauge"),
            "commit": commit(),
            "python": platform.python_version(),
            "java": _java(),
            "spark": version_of("pyspark"),
            "airflow": version_of("apache-airflow"),
            "great_expectations": version_of("great-expectations"),
            "numpy": version_of("numpy"),
            "pyarrow": version_of("pyarrow"),
        },
    )


@cache
def version_of(name: str) -> str | None:
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


def java_command() -> str | None:
    """The `java` that JAVA_HOME names, else the one on PATH; None without one."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def _java() -> str | None:
    """Java's version, from the JDK's `release` file so that Java need not start; None if it is unknown."""
    java = java_command()
    try:
        release = (Path(java).resolve().parents[1] / "release").read_text() if java else ""
    except OSError:
        return None
    version = re.search(r'^JAVA_VERSION="(.+)"$', release, re.MULTILINE)
    return version[1] if version else None
