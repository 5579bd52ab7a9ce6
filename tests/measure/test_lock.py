"""Tests the lock: one measurement at a time, and a new holder ends the processes that a dead one left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from streamgauge.base.errors import Outage
from streamgauge.base.folders import LOCKS, host_place
from streamgauge.bench.measure.lock import FENCE, measuring
from tests.driver.test_process import gone

USER = """
import os, time
from streamgauge.base.errors import Outage
from streamgauge.bench.measure.lock import measuring
os.setgroups([])
os.setgid({user})
os.setuid({user})
try:
    with measuring("{what}", patience_s={patience}):
        print("holds", flush=True)
        time.sleep({seconds})
except Outage as problem:
    print(str(problem).removeprefix("measuring lock: "), flush=True)
"""
HOLDER = """
import subprocess, sys, time
from pathlib import Path
from streamgauge.bench.measure.lock import measuring
with measuring(sys.argv[1], expected_s=float(sys.argv[3]), place=Path(sys.argv[2])) as token:
    child = subprocess.Popen(["sleep", "120"], start_new_session=True)
    print(token, child.pid, flush=True)
    time.sleep(120)
"""


@dataclass
class Holder:
    process: subprocess.Popen[str]
    token: int
    child: int  # what it started, in a session of its own


@contextmanager
def holding(what: str, place: Path, expected_s: float = 0) -> Iterator[Holder]:
    command = [sys.executable, "-c", HOLDER, what, str(place), str(expected_s)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    token, child = map(int, process.stdout.readline().split())
    try:
        yield Holder(process, token, child)
    finally:
        process.kill()
        process.wait(10)
        if psutil.pid_exists(child):
            psutil.Process(child).kill()


def state(place: Path) -> dict[str, object]:
    [file] = place.glob("*.measuring.json")
    return dict(json.loads(file.read_text()))


def test_tokens_grow_and_a_released_lock_names_nobody(tmp_path: Path) -> None:
    before = 0
    for _ in range(2):
        with measuring("a", place=tmp_path) as token:
            assert token > before
            before = token
            assert os.environ[FENCE].startswith(f"{token}@")
            assert (state(tmp_path)["pid"], state(tmp_path)["what"]) == (os.getpid(), "a")
        assert FENCE not in os.environ
        assert state(tmp_path) == {"token": token}  # who comes next with the same `a` must not end this process


def test_what_a_killed_holder_left_is_ended_and_nothing_else(tmp_path: Path) -> None:
    elsewhere = {**os.environ, FENCE: f"1@{tmp_path / 'elsewhere.json'}"}
    bystanders = [subprocess.Popen(["sleep", "120"], env=env) for env in (None, elsewhere)]
    try:
        with holding("a", tmp_path) as holder:
            holder.process.kill()
            holder.process.wait(10)
            assert not gone(holder.child, within_s=0.1)
            with measuring("b", place=tmp_path) as token:
                assert token == holder.token + 1
                assert gone(holder.child)
        assert [process.poll() for process in bystanders] == [None, None]
    finally:
        for process in bystanders:
            process.kill()
            process.wait(10)


def test_an_orphan_of_the_same_measurement_is_ended(tmp_path: Path) -> None:
    with holding("run cell", tmp_path) as holder, measuring("run cell", place=tmp_path) as token:
        assert token == holder.token + 1
        assert holder.process.wait(10) == -9
        assert gone(holder.child)


def test_another_measurement_is_waited_for_and_named_in_one_line(tmp_path: Path) -> None:
    with holding("other cell", tmp_path) as holder:
        with pytest.raises(Outage) as refused, measuring("cell", patience_s=0, place=tmp_path):
            pass
        assert str(refused.value).startswith(f"measuring lock: other cell (pid {holder.process.pid}) has held it")
        assert holder.process.poll() is None
        assert not gone(holder.child, within_s=0.1)


def test_a_holder_is_given_the_time_that_it_asked_for(tmp_path: Path) -> None:
    with holding("long cell", tmp_path, expected_s=4):
        began = time.monotonic()
        with pytest.raises(Outage, match="longer than it said"), measuring("cell", patience_s=0, place=tmp_path):
            pass
        assert time.monotonic() - began >= 2, "it was far from its end"


def test_a_state_that_is_garbage_gives_no_token_again(tmp_path: Path) -> None:
    with measuring("a", place=tmp_path) as before:
        [file] = tmp_path.glob("*.measuring.json")
    file.write_text("{torn")
    with measuring("a", place=tmp_path) as token:
        assert token > before


def test_what_a_killed_writer_left_behind_the_state_does_not_matter(tmp_path: Path) -> None:
    with measuring("a", place=tmp_path) as before:
        [file] = tmp_path.glob("*.measuring.json")
    file.write_text(file.read_text() + '"what": "b"}')
    with measuring("a", place=tmp_path) as token:
        assert token == before + 1


def test_one_host_has_one_place_whatever_the_temporary_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LOCKS, raising=False)
    found = set()
    for temporary in ("/tmp/a", "/tmp/b"):
        monkeypatch.setenv("TMPDIR", temporary)
        found.add(host_place())
    assert len(found) == 1
    monkeypatch.setenv(LOCKS, "/a/volume")
    assert host_place() == Path("/a/volume")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become two users")
def test_of_two_users_with_places_of_their_own_one_waits(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    for directory in tmp_path.parents:
        if any(part.startswith("pytest-of-") for part in directory.parts):
            directory.chmod(0o755)
    users: list[subprocess.Popen[str]] = []
    try:
        for number, user in enumerate((65533, 65534)):
            temporary = tmp_path / str(user)
            temporary.mkdir(mode=0o777)
            os.chown(temporary, user, user)
            environment = {**os.environ, LOCKS: str(tmp_path), "TMPDIR": str(temporary), "HOME": str(temporary)}
            code = USER.format(user=user, what=f"measurement {number}", patience=1 if number else 60, seconds=120)
            one = subprocess.Popen(
                [sys.executable, "-c", code],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            users.append(one)
            assert one.stdout is not None
            told = one.stdout.readline()
            assert told.startswith("measurement 0" if number else "holds"), told
        users[0].kill()
        users[0].wait(10)
        with measuring("measurement 2", place=tmp_path):
            assert state(tmp_path)["what"] == "measurement 2"
    finally:
        for one in users:
            one.kill()
            one.wait(10)
