"""Artifacts: finished or not there, one builder at a time, and keys that say what decides the content."""

from __future__ import annotations

import errno
import hashlib
import json
import multiprocessing
import os
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamgauge import config
from streamgauge.base.errors import Outage, UserError
from streamgauge.base.jsonl import append_json, read_jsonl, write_json
from streamgauge.catalog.artifacts import ALGORITHM, Build, Store
from streamgauge.streams.keys import events_key, profile_key, stream_key


def names(store: Store) -> list[str]:
    """Names of everything in the store except locks."""
    return sorted(str(p.relative_to(store.root)) for p in store.root.rglob("*") if p.is_file() and p.suffix != ".lock")


def test_an_artifact_appears_whole(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.building("events", "k") as build:
        (build.path / "part").write_text("x")
        build.manifest["files"] = ["part"]
        assert store.find("events", "k") is None
    found = store.find("events", "k")
    assert found is not None
    digests = {"part": hashlib.sha256(b"x").hexdigest()}
    assert found.manifest == {"kind": "events", "key": "k", "files": ["part"], "digests": digests}
    assert [file.read_text() for file in found.files()] == ["x"]
    assert names(store) == ["data/events/k/manifest.json", "data/events/k/part"]


@pytest.mark.parametrize("problem", [UserError("no"), RuntimeError("bug"), KeyboardInterrupt()])
def test_an_error_while_building_leaves_nothing(tmp_path: Path, problem: BaseException) -> None:
    store = Store(tmp_path)

    def build_and_fail() -> None:
        with store.building("events", "k") as build:
            (build.path / "part").write_text("x")
            raise problem

    with pytest.raises(type(problem)):
        build_and_fail()
    assert names(store) == []
    assert store.find("events", "k") is None
    with pytest.raises(UserError, match="no finished events there; run the stage ingest first"):
        store.need("events", "k", "ingest")


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    said = "cannot be written: No space left on device; free space"
    with pytest.raises(UserError, match=said), Store(tmp_path).building("events", "k"):
        raise OSError(28, os.strerror(28))
    assert names(Store(tmp_path)) == []


@pytest.mark.parametrize(
    ("problem", "kind", "said"),
    [
        (OSError(errno.EACCES, "Permission denied", "/data/a.csv"), UserError, "^/data/a.csv: cannot be used: Perm"),
        (OSError(errno.ENOSPC, "No space left on device", "/spill/x"), UserError, "^/spill/x: cannot be written: No s"),
        (OSError(errno.ESTALE, "Stale file handle", "/nfs/x"), Outage, "events/k: cannot be built: Stale .*: /nfs/x$"),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset"), Outage, "events/k: cannot be built: Connection"),
        (OSError("AWS Error NETWORK_CONNECTION during PutObject"), Outage, "events/k: cannot be built: AWS Error NETW"),
        (OSError("AWS Error ACCESS_DENIED during PutObject"), UserError, "events/k.*: cannot be written: AWS Error AC"),
    ],
)
def test_what_an_artifact_is_made_from_may_be_at_fault(
    tmp_path: Path, problem: OSError, kind: type[Exception], said: str
) -> None:
    def make(_: Build) -> None:
        raise problem

    with pytest.raises(kind, match=said):
        Store(tmp_path).made("events", "k", make)
    assert names(Store(tmp_path)) == []


@pytest.mark.parametrize("root", ["file", "file/below"])
def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path, root: str) -> None:
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / root)
    with pytest.raises(UserError, match="cannot be written"), store.building("events", "k"):
        pass
    with pytest.raises(UserError, match="cannot be written"):
        store.run("r")


def test_what_dead_builders_left_is_neither_found_nor_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    dead = store.path("events", "k.tmp-dead")
    dead.mkdir(parents=True)
    (dead / "part").write_text("half")
    other = store.path("events", "other.tmp-alive")  # somebody else's
    other.mkdir()
    store.path("events", "k").mkdir()  # a directory without a manifest is no artifact
    (store.path("events", "k") / "part").write_text("half")
    assert store.find("events", "k") is None
    with store.building("events", "k"):
        assert not dead.exists()
    assert names(store) == ["data/events/k/manifest.json"]
    assert other.exists()


def test_what_a_killed_attempt_at_a_task_half_wrote_is_not_published(tmp_path: Path) -> None:
    with Store(tmp_path).building("stream", "k") as build:
        for name in (".part-0.parquet.0a1b2c3d", "part-0.parquet", ".hidden"):
            (build.path / name).write_text("x")
    assert names(Store(tmp_path)) == [
        f"data/stream/k/{name}" for name in (".hidden", "manifest.json", "part-0.parquet")
    ]


def build_slowly(root: Path, number: int) -> None:
    def make(build: Build) -> None:
        assert len(list(build.path.parent.glob("k.tmp-*"))) == 1
        (root / f"built-by-{number}").touch()
        for part in range(3):
            (build.path / f"part-{part}").write_text(str(number))
            time.sleep(0.3)
        build.manifest["builder"] = number

    found = Store(root).made("events", "k", make)
    assert found.reused == (found.manifest["builder"] != number)


def die_while_building(root: Path) -> None:
    with Store(root).building("events", "k") as build:
        (build.path / "part").write_text("half")
        os._exit(9)  # as SIGKILL: no clean-up runs


def in_processes(target: Any, arguments: list[tuple[Any, ...]]) -> list[int | None]:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=target, args=each) for each in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    return [process.exitcode for process in processes]


def test_builders_at_the_same_time_never_mix(tmp_path: Path) -> None:
    assert in_processes(build_slowly, [(tmp_path, n) for n in range(4)]) == [0] * 4
    found = Store(tmp_path).find("events", "k")
    assert found is not None
    assert {(found.path / f"part-{n}").read_text() for n in range(3)} == {str(found.manifest["builder"])}
    assert len(list(found.path.parent.iterdir())) == 2  # the artifact and its lock
    assert len(list(tmp_path.glob("built-by-*"))) == 1, "whoever waited takes what is there"


def test_a_killed_builder_blocks_nobody(tmp_path: Path) -> None:
    assert in_processes(die_while_building, [(tmp_path,)]) == [9]
    store = Store(tmp_path)
    assert store.find("events", "k") is None
    assert len(names(store)) == 1
    with store.building("events", "k"):
        pass
    assert names(store) == ["data/events/k/manifest.json"]


def test_json_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    write_json(file, {"a": 1})
    with pytest.raises(TypeError):
        write_json(file, {"a": [1] * 10_000, "b": object()})
    assert json.loads(file.read_text()) == {"a": 1}
    assert list(tmp_path.iterdir()) == [file]


def test_a_torn_last_line_is_left_out_and_does_not_swallow_the_next(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    assert read_jsonl(file) == []
    append_json(file, {"n": "a\u2028b"})  # a line end to Python, not to JSON lines
    with open(file, "ab") as handle:
        handle.write('{"n": "ü'.encode()[:-1])
    assert read_jsonl(file) == [{"n": "a\u2028b"}]
    append_json(file, {"n": 3})
    append_json(file, {"n": 4})
    assert read_jsonl(file) == [{"n": "a\u2028b"}, {"n": 3}, {"n": 4}]


def test_too_little_space_is_told_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"MiB free, \d+ MiB needed; free some space"):
        Store(tmp_path / "not" / "yet").require_space(1 << 60)
    assert list(tmp_path.iterdir()) == []


# -- keys


SOURCE: dict[str, Any] = {"files": ["f.csv"], "time": {"column": "t", "unit": "ms"}}
EXPERIMENT: dict[str, Any] = {"name": "e", "target_percent": 20, "delay": {"max": "2s"}, "seed": 1}


def keys(path: Path, source: dict[str, Any], experiment: dict[str, Any], **more: Any) -> dict[str, str]:
    path.mkdir(exist_ok=True)
    if not (path / "f.csv").exists():
        (path / "f.csv").write_text("t\n1\n")
    file = path / "b.yaml"
    file.write_text(yaml.safe_dump({"name": "b", "source": source, "experiments": [experiment], **more}))
    benchmark = config.load(file)
    store = Store(path / "artifacts")
    return {
        "events": events_key(store, benchmark),
        "profile": profile_key(store, benchmark),
        "stream": stream_key(store, benchmark, benchmark.experiments[0]),
    }


@pytest.mark.parametrize(
    ("source", "experiment", "more"),
    [
        ({}, {"name": "other"}, {}),
        ({}, {"on_infeasible": "error"}, {}),
        ({"max_bad_fraction": 0.5}, {}, {}),
        ({"separator": "comma"}, {}, {}),
        ({}, {"delay": {"max": "2000ms", "min": "0s"}}, {}),
        ({}, {"target_percent": 20.0}, {}),
        ({}, {}, {"description": "new", "name": "new"}),
        ({}, {}, {"workloads": [{"name": "w", "query": "passthrough"}], "systems": [{"name": "s"}]}),
    ],
)
def test_what_does_not_decide_the_content_keeps_the_keys(
    tmp_path: Path, source: dict[str, Any], experiment: dict[str, Any], more: dict[str, Any]
) -> None:
    before = keys(tmp_path, SOURCE, EXPERIMENT)
    assert keys(tmp_path, SOURCE | source, EXPERIMENT | experiment, **more) == before


@pytest.mark.parametrize(
    ("experiment"),
    [
        {"target_percent": 21},
        {"seed": 2},
        {"delay": {"max": "3s"}},
        {"delay": {"min": "1s", "max": "2s"}},
        {"delay": {"max": "2s", "distribution": "normal"}},
        {"outputs": ["parquet", "csv"]},
        {"on_infeasible": "closest"},
    ],
)
def test_a_changed_experiment_changes_the_stream_only(tmp_path: Path, experiment: dict[str, Any]) -> None:
    before, after = keys(tmp_path, SOURCE, EXPERIMENT), keys(tmp_path, SOURCE, EXPERIMENT | experiment)
    assert {kind for kind in before if before[kind] != after[kind]} == {"stream"}


@pytest.mark.parametrize(
    ("source", "more"),
    [
        ({"separator": ";"}, {}),
        ({"header": False}, {}),
        ({"time": {"column": "t", "unit": "s"}}, {}),
        ({"order": "event_time"}, {}),
        ({"columns": {"t": "int64"}}, {}),
        ({}, {"scale": 0.5}),
    ],
)
def test_a_changed_source_changes_everything(tmp_path: Path, source: dict[str, Any], more: dict[str, Any]) -> None:
    before, after = keys(tmp_path, SOURCE, EXPERIMENT), keys(tmp_path, SOURCE | source, EXPERIMENT, **more)
    assert all(before[kind] != after[kind] for kind in before)


def test_keys_follow_the_bytes_of_the_files_not_their_place(tmp_path: Path) -> None:
    here, there = keys(tmp_path / "a", SOURCE, EXPERIMENT), keys(tmp_path / "b", SOURCE, EXPERIMENT)
    assert here == there
    (tmp_path / "b" / "f.csv").write_text("t\n2\n")  # same size: the time of the change tells
    os.utime(tmp_path / "b" / "f.csv", ns=(1, 1))
    changed = keys(tmp_path / "b", SOURCE, EXPERIMENT)
    assert all(here[kind] != changed[kind] for kind in here)


def test_keys_follow_the_version_of_the_algorithm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys(tmp_path, SOURCE, EXPERIMENT)
    monkeypatch.setitem(ALGORITHM, "stream", ALGORITHM["stream"] + 1)
    after = keys(tmp_path, SOURCE, EXPERIMENT)
    assert {kind for kind in before if before[kind] != after[kind]} == {"stream"}


def test_a_key_follows_what_a_registered_distribution_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_delays.py").write_text("def half(quantile, low, high):\n    return high / 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    experiment = EXPERIMENT | {"delay": {"distribution": "my_delays:half"}}
    before = keys(tmp_path, SOURCE, experiment)
    monkeypatch.setattr(import_module("my_delays"), "half", lambda _, low, high: (low + high) / 3)
    changed = keys(tmp_path, SOURCE, experiment)
    assert (changed["stream"] != before["stream"], changed["events"] == before["events"]) == (True, True)


def test_a_key_follows_the_content_of_the_profile_it_draws_from(tmp_path: Path) -> None:
    profile = {"tick": "ns", "delay_histogram": [[10**9, 2 * 10**9, 5]]}
    (tmp_path / "p.json").write_text(json.dumps(profile))
    experiment = EXPERIMENT | {"delay": {"distribution": "empirical", "profile": "p.json"}}
    before = keys(tmp_path, SOURCE, experiment)
    (tmp_path / "p.json").rename(tmp_path / "q.json")
    experiment["delay"]["profile"] = "q.json"
    assert keys(tmp_path, SOURCE, experiment) == before
    (tmp_path / "q.json").write_text(json.dumps(profile | {"tick": "ps"}))
    assert keys(tmp_path, SOURCE, experiment)["stream"] != before["stream"]


@pytest.mark.parametrize(
    "run_id", ["../../nexx", "a/b", "", ".", "..", ".hidden", "a b", "a\nb", "x" * 201, "-x", "--help", "_x"]
)
def test_a_run_s_name_is_one_folder_s_name(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(UserError, match=r"run: found .*, allowed: at most 200 letters"):
        Store(tmp_path / "artifacts").run(run_id)
    assert not (tmp_path / "artifacts").exists()


def test_airflow_s_own_names_of_runs_are_allowed(tmp_path: Path) -> None:
    name = "scheduled__2026-11-23T02:00:00+00:00"
    assert Store(tmp_path).run(name) == tmp_path / "runs" / name
