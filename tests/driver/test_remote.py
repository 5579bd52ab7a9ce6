"""Drivers that somebody started on other hosts, by the keys of the benchmark file; here the hosts are one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamgauge.config import Replay, System, Workload, parse
from streamgauge.driver.ceiling import ceiling
from streamgauge.driver.fleet import drivers
from streamgauge.driver.known import KnownSystem
from streamgauge.driver.process import TOKEN
from streamgauge.driver.trial import run_trial
from streamgauge.errors import UserError
from tests.driver.conftest import COLUMNS, Certificate, Serve

NAMES = ",".join(COLUMNS)


@contextmanager
def by_hand(artifact: Path, count: int, *options: str) -> Iterator[list[str]]:
    """So many `streamgauge driver` processes, one share each; gives their addresses."""
    started = []
    try:
        for number in range(count):
            command = [sys.executable, "-m", "streamgauge.driver", str(artifact), "--share", f"{number}/{count}"]
            command += ["--partitions", "3", "--max-memory-mb", "64", *options]
            environment = {**os.environ, TOKEN: "secret"}
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
        yield [f"127.0.0.1:{json.loads(process.stdout.readline())['port']}" for process in started if process.stdout]
    finally:
        for process in started:
            process.terminate()
            process.communicate(timeout=15)


def test_two_drivers_with_tls_and_token_serve_trials_of_one_stream(
    artifact: Path, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate
    monkeypatch.setenv("GENERATORS", "secret")
    with by_hand(artifact, 2, "--columns", NAMES, "--certificate", cert, "--key", key) as addresses:
        given = {"remote": addresses, "partitions": 3, "token_variable": "GENERATORS", "cafile": cert}
        replay = parse(Replay, given, "test")
        with drivers(artifact, replay, tick="ns", columns=COLUMNS) as found:
            assert [endpoint.partitions for endpoint in found.endpoints] == [2, 1]
            assert ceiling(found, 0.2).processes == 2
            system = KnownSystem(System(name="k", engine="known"), artifact)
            workload = Workload(name="w", query="passthrough")
            for _ in range(2):
                run = run_trial(system, found, workload, rate=3000, seconds=0.5, work=artifact)
                assert run.observation.invalid is None
                assert (run.observation.offered, run.details["emitted"]) == (1500, 1500)
                offsets = run.details["clock_offset_ns"]
                assert len(offsets) == 2
                assert all(abs(offset) <= error + 1_000_000 for offset, error in offsets)


@pytest.mark.parametrize(
    ("settings", "columns", "message"),
    [
        ({}, {"carrier": "string"}, "sends seq, .*start it with --columns carrier"),
        ({"partitions": 4}, COLUMNS, "replay.partitions: found 4, but the drivers at replay.remote serve 1; "),
        ({"token_variable": "NO_SUCH"}, COLUMNS, "replay.token_variable: the environment has no NO_SUCH; "),
        ({"remote": ["127.0.0.1:1"]}, COLUMNS, "replay.remote: driver 127.0.0.1:1: .*refused.*is `streamgauge driver`"),
    ],
)
def test_what_does_not_fit_is_told_before_the_first_trial(
    serve: Serve, settings: dict[str, object], columns: dict[str, str], message: str
) -> None:
    given = {"remote": [serve([1, 2, 3]).address], **settings}
    with pytest.raises(UserError, match=message):
        drivers(Path("."), parse(Replay, given, "test"), tick="ns", columns=columns, line=True)


@pytest.mark.parametrize("settings", [{"remote": ["gen1"]}, {"remote": ["gen1:7100"], "processes": 2}])
def test_unusable_keys_are_one_line(settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"^test: "):
        parse(Replay, settings, "test")
