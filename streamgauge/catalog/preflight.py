"""Checks before anything starts: Java, the source files, and disk space. Failures are one-line UserErrors."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from streamgauge.base.environment import java_command
from streamgauge.base.errors import UserError
from streamgauge.catalog.artifacts import OTHER_ARTIFACTS, Store
from streamgauge.catalog.source_files import stat_source

JAVA_LEAST = 17
#: events and streams compress well; temporary copies and checkpoints do not
SPACE_PER_SOURCE_BYTE = 4
SPACE_LEAST = 200 * 2**20


def check(store: Store, files: Sequence[str]) -> None:
    """Checks that Java is 17 or newer, that all source files exist, and that space is free. Raises UserError."""
    check_java()
    check_files(store, files)


def check_files(
    store: Store, files: Sequence[str], *, per_byte: int = SPACE_PER_SOURCE_BYTE, other: str = OTHER_ARTIFACTS
) -> None:
    """Checks that all source files exist, and that so much space is free for each of their bytes. Raises UserError.

    other: says how to choose another disk.
    """
    size = sum(stat_source(name).st_size for name in files)
    store.require_space(SPACE_LEAST + per_byte * size, other)


def check_java() -> None:
    java = java_command()
    if not java or not Path(java).exists():
        where = f"JAVA_HOME names {java}" if java else "no java on PATH"
        raise UserError(f"Java: found none ({where}), allowed: {JAVA_LEAST} or newer; install a JDK or set JAVA_HOME")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if not version:
        raise UserError(f"Java: {java} does not report its version; install a JDK {JAVA_LEAST} or newer")
    if int(version[1]) < JAVA_LEAST:
        raise UserError(
            f"Java: found {version[1]} ({java}), allowed: {JAVA_LEAST} or newer; set JAVA_HOME to a newer one"
        )
