"""Drivers that somebody started on other hosts, by the keys of the benchmark file; here the hosts are one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.ceiling import ceiling
from streamgauge.bench.driver.client import Connection, RefusedError
from streamgauge.bench.driver.fleet import Drivers, RemoteDrivers, drivers
from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.driver.process import TOKEN
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.bench.engines.known.known_system import KnownSystem
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.bench.search.verdict import judge
from streamgauge.catalog.artifacts import Artifact
from streamgauge.config import Replay, Search, Workload, parse
from streamgauge.streams.keys import stream_key
from tests.driver.conftest import COLUMNS, Certificate, Serve
from tests.measure.benches import write_bench

NAMES = ",".join(COLUMNS)
KNOWN = KnownSettings(name="k", engine="known")


@contextmanager
def by_hand(count: int, *options: str) -> Iterator[tuple[list[str], list[subprocess.Popen[str]]]]:
    """Starts `streamgauge driver` processes, `{share}` replaced by each one's; gives their addresses and them."""
    started = []
    try:
        for number in range(count):
            command = [str(Path(sys.executable).with_name("streamgauge")), "driver", *options]
            command = [part.format(share=f"{number}/{count}") for part in command]
            environment = {**os.environ, TOKEN: "secret"}
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
        lines = [process.stdout.readline() for process in started if process.stdout]
        yield [f"127.0.0.1:{json.loads(line)['port']}" for line in lines], started
    finally:
        for process in started:
            process.terminate()
            process.communicate(timeout=15)


def named(place: Path, **more: str) -> Artifact:
    return Artifact("stream", "", place, json.loads((place / "manifest.json").read_text()) | more)


def counted(found: Drivers, work: Path, rate: float, seconds: float) -> TrialRun:
    """A trial whose every event is counted once."""
    known, workload = KnownSystem(KNOWN, work), Workload(name="w", query="passthrough")
    found.start()
    run = run_trial(known, found, TrialRequest(workload, work, rate, seconds, Bounds(max_slip_s=10)))
    assert run.observation.invalid is None
    assert run.observation.offered == run.details["emitted"] == round(rate * seconds)
    return run


def test_two_drivers_with_tls_and_token_serve_trials_of_one_stream(
    tmp_path: Path, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = write_bench(tmp_path)
    stream = bench.store.need(
        "stream", stream_key(bench.store, bench.benchmark, bench.benchmark.experiments[0]), "test"
    )
    cert, key = certificate
    monkeypatch.setenv("GENERATORS", "secret")
    fixed = ["--partitions", "3", "--max-memory-mb", "64", "--columns", NAMES, "--certificate", cert, "--key", key]
    with by_hand(2, str(stream.path), "--share", "{share}", *fixed) as (addresses, _):
        given = {"remote": addresses, "partitions": 3, "token_variable": "GENERATORS", "cafile": cert}
        replay = parse(Replay, given | {"max_memory_mb": 128}, "test")
        with drivers(stream, replay, tick="ns", columns=COLUMNS) as found:
            assert [endpoint.partitions for endpoint in found.endpoints] == [2, 1]
            assert ceiling(found, 0.2).processes == 2
            for _ in range(2):
                offsets = counted(found, tmp_path, 3000, 0.5).details["clock_offset_ns"]
                assert len(offsets) == 2
                assert all(abs(offset) <= error + 1_000_000 for offset, error in offsets)


def test_agents_serve_whatever_stream_of_their_store_the_controller_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost driver makes the trial invalid; restarted at its address, it is told again what to serve."""
    monkeypatch.setenv("GENERATORS", "secret")
    bench = write_bench(tmp_path)
    stream = bench.store.need(
        "stream", stream_key(bench.store, bench.benchmark, bench.benchmark.experiments[0]), "test"
    )
    with by_hand(2, "--store", str(bench.store.root)) as (addresses, processes):
        given = {"remote": addresses, "token_variable": "GENERATORS", "max_memory_mb": 128}
        for settings, columns in (({"partitions": 2}, {}), ({"partitions": 3, "densify": 2}, COLUMNS)):
            replay = parse(Replay, given | settings, "test")
            found = drivers(stream, replay, tick="ns", columns=columns, salted=["carrier"] if columns else [])
            assert isinstance(found, RemoteDrivers)
            counted(found, tmp_path, 3000, 0.5)
            with Connection(found.endpoints[1]) as asked:
                assert asked.serves is not None
                assert (asked.serves["share"], asked.serves["columns"]) == ("1/2", columns)
                with pytest.raises(RefusedError, match="no finished stream there; run the stage generate first"):
                    asked.serve("0123456789abcdef", found.servings[1].model_copy(update={"densify": 3}))
                said = "no stream is served here yet; the controller must send `serve` first"
                with pytest.raises(RefusedError, match=said):
                    asked.latest()
        processes[1].kill()
        processes[1].wait()
        found.start()
        request = TrialRequest(Workload(name="w", query="passthrough"), tmp_path, 3000, 0.5)
        lost = run_trial(KnownSystem(KNOWN, tmp_path), found, request)
        assert str(lost.observation.invalid).startswith(f"driver {addresses[1]}: ")
        assert judge(lost.observation, Search()).outcome == "inconclusive"
        with by_hand(1, "--store", str(bench.store.root), "--port", addresses[1].rpartition(":")[2]):
            counted(found, tmp_path, 3000, 0.5)


@pytest.mark.parametrize(
    ("settings", "columns", "message"),
    [
        ({}, {"carrier": "string"}, "its columns is carrier,flight; restart it with --columns carrier"),
        ({"partitions": 4}, COLUMNS, "its partitions is 1; restart it with --partitions 4"),
        ({"mode": "time_map"}, COLUMNS, "its mode is constant; restart it with --mode time_map"),
        ({"profile": "sine"}, COLUMNS, "its profile is constant; restart it with --profile sine"),
        ({"densify": 2}, COLUMNS, "its densify is 1; restart it with --densify 2"),
        ({"queue_seconds": 9}, COLUMNS, "its queue_seconds is 30.0; restart it with --queue-seconds 9.0"),
        ({"max_memory_mb": 99}, COLUMNS, "its max_memory_mb is 1024; restart it with --max-memory-mb 99"),
        ({"remote": 2, "partitions": 2}, COLUMNS, "its partitions is 1; restart it with --partitions 2"),
        ({"remote": 2}, COLUMNS, "replay.partitions: found 1, allowed: at least 2, as remote"),
        ({"token_variable": "NO_SUCH"}, COLUMNS, "replay.token_variable: the environment has no NO_SUCH; "),
        ({"remote": ["127.0.0.1:1"]}, COLUMNS, "replay.remote: driver 127.0.0.1:1: .*refused.*is `streamgauge driver`"),
    ],
)
def test_what_does_not_fit_is_told_before_the_first_trial(
    serve: Serve, settings: dict[str, Any], columns: dict[str, str], message: str
) -> None:
    given = {"remote": [serve([1, 2, 3]).address], **settings}
    if isinstance(count := given["remote"], int):
        given["remote"] = [serve([1, 2, 3]).address for _ in range(count)]
    with pytest.raises(UserError, match=message) as told:
        drivers(
            Artifact("stream", "", Path("."), {}),
            parse(Replay, given, "test"),
            tick="ns",
            columns=columns,
            line=True,
            salted=["carrier"],
        )
    assert "\n" not in str(told.value)


def test_another_stream_under_the_same_settings_is_told(artifact: Path, serve: Serve) -> None:
    replay = parse(Replay, {"remote": [serve([1, 2, 3]).address]}, "test")
    with pytest.raises(UserError, match=f"its stream is none; restart it with the directory of the stream {'5' * 16}$"):
        drivers(named(artifact, sha256="5" * 64), replay, tick="ns", columns=COLUMNS, line=True)


@pytest.mark.parametrize("settings", [{"remote": ["gen1"]}, {"remote": ["gen1:7100"], "processes": 2}])
def test_unusable_keys_are_one_line(settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"^test: "):
        parse(Replay, settings, "test")
