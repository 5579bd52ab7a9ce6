"""Quotas of CPU time by control groups: what they take, and that none stays, whoever dies.

Where the machine offers none, each test asserts the line that says so instead.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.system import Share
from streamgauge.bench.engines import cgroup
from streamgauge.bench.engines.cgroup import Quota, quota_parent
from streamgauge.bench.engines.processes import Session
from streamgauge.bench.engines.shares import Given

BUSY = "import time\nwhile True: pass"
REFUSAL = "this machine offers no quota of CPU time: "


def no_quota() -> str:
    """The line that says why this machine offers no quota; empty if it does."""
    try:
        quota_parent()
    except UserError as problem:
        return str(problem)
    return ""


@pytest.fixture
def session() -> Iterator[Session]:
    process = subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True)
    session = Session(process.pid)
    yield session
    session.end(0.5)
    process.wait()


def used(session: Session, seconds: float) -> float:
    """CPU seconds a second that a session uses."""
    begin, before = time.monotonic(), session.cpu_seconds()
    time.sleep(seconds)
    return (session.cpu_seconds() - before) / (time.monotonic() - begin)


def test_a_quota_takes_time_from_a_running_process_and_goes_with_its_session(session: Session) -> None:
    given = Given(None)
    if why := no_quota():
        with pytest.raises(UserError) as refused:
            given.change(Share(0.25), session)
        assert str(refused.value) == why
        assert why.startswith(REFUSAL)
        return
    given.change(Share(0.25), session)
    assert session._quota is not None
    path = session._quota.path
    assert used(session, 1.0) == pytest.approx(0.25, abs=0.1)
    given.change(Share(0.5), session)
    assert 0.3 < used(session, 0.6) < 0.65
    given.change(None, session)
    assert used(session, 0.6) > 0.3  # of what others leave it
    session.end(0.5)
    assert not path.exists()


STARTS = """
import os, sys, time
from pathlib import Path
from streamgauge.base.processes import Leader
from streamgauge.bench.engines.processes import Session
leader = Leader([sys.executable, "-c", "while True: pass"], dict(os.environ), Path(sys.argv[1]))
session = Session(leader.pid)
session.give(0.25)
print(leader.pid, session._quota.path, flush=True)
time.sleep(600)
"""


def test_no_group_and_no_process_stay_when_its_owner_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTS, str(tmp_path / "log")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stderr is not None
        line = owner.stdout.readline()
        if why := no_quota():
            assert why in owner.stderr.read()
            return
        leader, _, path = line.strip().partition(" ")
        assert Path(path).is_dir()
        owner.kill()
    deadline = time.monotonic() + 30
    while (Path(path).exists() or psutil.pid_exists(int(leader))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(path).exists()
    assert not psutil.pid_exists(int(leader))


def test_whole_cpus_are_given_by_affinity(session: Session) -> None:
    given, here = Given(None), sorted(os.sched_getaffinity(0))
    [process] = session.processes()
    given.change(Share(1, whole=True), session)
    assert process.cpu_affinity() == here[:1]
    given.change(None, session)
    assert process.cpu_affinity() == here
    most = len(here)
    with pytest.raises(UserError, match=f"^found {most + 1}, allowed: at most {most}, as the system has no more CPUs$"):
        given.change(Share(most + 1, whole=True), session)
    assert Given(here[:1]).cpus == here[:1]


@pytest.fixture
def second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A group of cgroup v2 as folders; its files are what a kernel would show."""
    own = tmp_path / "a.slice" / "b.scope"
    own.mkdir(parents=True)
    (own / "cgroup.subtree_control").write_text("\n")
    (own / "cpu.max").write_text("max 100000\n")
    (own.parent / "cgroup.subtree_control").write_text("cpu memory\n")
    monkeypatch.setattr(cgroup, "group_of", lambda controller="": None if controller else own)
    return own


def test_in_cgroup_v2_a_group_weighs_at_most_what_the_kernel_allows(
    second: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (second / "cpu.weight").touch()
    for cpus, weight in ((2, "200"), (128, "10000")):
        monkeypatch.setattr("os.cpu_count", lambda cpus=cpus: cpus)
        Quota(second)._weigh()
        assert (second / "cpu.weight").read_text() == weight


def test_in_cgroup_v2_the_group_above_serves_where_this_one_has_processes(second: Path) -> None:
    assert quota_parent() == second.parent
    group = Quota.made(4711)
    assert group.path.parent == second.parent
    group.give(0.75)
    assert (group.path / "cpu.max").read_text() == "75000 100000"
    group.give(None)
    assert (group.path / "cpu.max").read_text() == "max 100000"
    (second / "cgroup.subtree_control").write_text("cpu\n")
    assert quota_parent() == second
    (second / "cpu.max").write_text("50000 100000\n")  # its own limit holds for those below it alone
    (second / "cgroup.subtree_control").write_text("memory\n")
    with pytest.raises(UserError, match=f"^{REFUSAL}{second} hands the controller cpu to no group below it"):
        quota_parent()


def test_a_machine_without_control_groups_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "group_of", lambda **_: None)
    with pytest.raises(UserError, match=f"^{REFUSAL}neither cgroup v1 nor v2 has its controller cpu$"):
        Given(None).change(Share(0.5), None)
    Given(None).change(Share(1, whole=True), None)
