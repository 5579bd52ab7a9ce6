"""The command kafka: a broker and a registry that answer where it says, and end with it."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from streamgauge.app.services.java_server import HOME
from streamgauge.streams.kafka.clients import Access, Topics
from tests.conftest import is_made
from tests.e2e.processes import COMMAND

pytestmark = pytest.mark.e2e


def test_broker_and_registry_answer_at_the_addresses_that_are_printed(tmp_path: Path) -> None:
    is_made("kafka", HOME / "registry")
    command = [COMMAND, "kafka", "--port", "0", "--registry", "0"]
    with subprocess.Popen([*command, "--directory", str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        bootstrap, address = process.stdout.readline().strip(), process.stdout.readline().strip()
        try:
            Topics(Access(bootstrap)).check()
            with urllib.request.urlopen(f"{address}/subjects") as answer:
                assert json.load(answer) == []
        finally:
            process.send_signal(signal.SIGINT)
        process.wait(30)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{address}/subjects")
