"""A real Carbon daemon, and what it has stored."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import whisper

from tests.e2e.processes import free_port
from tests.metrics.backend import wait_until

CONF = """[cache]
LINE_RECEIVER_INTERFACE = 127.0.0.1
LINE_RECEIVER_PORT = {port}
PICKLE_RECEIVER_PORT = 0
CACHE_QUERY_INTERFACE = 127.0.0.1
CACHE_QUERY_PORT = {query_port}
MAX_CREATES_PER_MINUTE = inf
MAX_UPDATES_PER_SECOND = inf
CARBON_METRIC_INTERVAL = 0
"""


@dataclass(frozen=True)
class Carbon:
    port: int
    folder: Path

    def series(self, path: str) -> list[float]:
        """Values in the order of their seconds; none while there is no file."""
        file = self.folder / "whisper" / Path(*path.split(".")).with_suffix(".wsp")
        if not file.exists():
            return []
        _, values = whisper.fetch(str(file), 0)
        return [value for value in values if value is not None]


def _listens(process: subprocess.Popen[bytes], log: Path) -> bool:
    """Waits until Carbon listens; False if it has ended."""
    begun = b"CarbonReceiverFactory starting"
    wait_until(lambda: process.poll() is not None or begun in log.read_bytes(), "Carbon", 60)
    return process.poll() is None


@contextmanager
def carbon(folder: Path) -> Iterator[Carbon]:
    (folder / "storage-schemas.conf").write_text("[all]\npattern = .*\nretentions = 1s:1h\n")
    places = {name: str(folder) for name in ("GRAPHITE_ROOT", "GRAPHITE_CONF_DIR", "GRAPHITE_STORAGE_DIR")}
    places["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"  # its generated code is older than protobuf 4
    command = [sys.executable, str(Path(sys.executable).with_name("carbon-cache.py"))]
    command += [f"--config={folder}/carbon.conf", f"--pidfile={folder}/pid", "--debug", "start"]
    for _ in range(3):  # somebody else may have taken a port meanwhile
        port = free_port()
        (folder / "carbon.conf").write_text(CONF.format(port=port, query_port=free_port()))
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, env=os.environ | places, stdout=log, stderr=log)
        if _listens(process, folder / "log"):
            break
    assert process.poll() is None, (folder / "log").read_text()
    try:
        yield Carbon(port, folder)
    finally:
        process.terminate()
        process.wait(20)
