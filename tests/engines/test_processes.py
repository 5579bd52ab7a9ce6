"""The account of a session, against what real processes say of themselves: some reaped, some orphaned, some killed."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgauge.bench.engines import processes
from streamgauge.bench.engines.cgroup import Group
from streamgauge.bench.engines.processes import Session

#: what each scenario needs; every process writes its own time, several times where it does not live to its end
TOOLS = """
import os, resource, signal, sys, time

truth = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)

def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime

def tell():
    os.write(truth, f"{os.getpid()} {used():.6f}\\n".encode())

def burn(seconds):
    end, word = used() + seconds, 0.0
    while used() < end:
        if used() > word:
            tell()
            word = used() + 0.005
    tell()

def start(work, *given):
    pid = os.fork()
    if not pid:
        work(*given)
        tell()
        os._exit(0)
    return pid

def reap(*pids):
    for pid in pids:
        os.waitpid(pid, 0)
"""
SCENARIOS = {
    "reaped": """
for _ in range(3):
    reap(*[start(burn, 0.25) for _ in range(2)])
""",
    "short": """
for _ in range(30):
    reap(start(burn, 0.05))
""",
    "orphaned": """
for _ in range(2):
    reap(start(lambda: start(burn, 0.9)))
""",
    "killed": """
def worker():
    burn(0.4)
    signal.pause()

for _ in range(4):
    child = start(worker)
    time.sleep(0.7)
    os.kill(child, signal.SIGKILL)
    reap(child)
child = start(burn, 60)  # in the midst of its work
time.sleep(2)
os.kill(child, signal.SIGKILL)
reap(child)
""",
    # as PySpark's daemon and its workers: it dies, and those that run on are nobody's
    "daemon": """
def daemon():
    reap(*[start(burn, 0.3) for _ in range(3)])
    start(burn, 1.0)
    burn(0.3)
    signal.pause()

child = start(daemon)
time.sleep(2.5)
os.kill(child, signal.SIGKILL)
reap(child)
""",
    # what a child has reaped is reaped with it
    "nested": """
def middle(depth):
    burn(0.05)
    if depth:
        reap(start(middle, depth - 1), start(middle, depth - 1))

reap(start(middle, 4))
""",
}


# an orphan's last moments are lost from the last look on, and a busy machine looks late
@pytest.fixture(params=["group", pytest.param("looks", marks=pytest.mark.alone)])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "looks":
        monkeypatch.setattr(Group, "create", lambda _: None)
    return str(request.param)


class Child:
    def __init__(self, place: Path, scenario: str) -> None:
        self.truth = place / "truth"
        self.truth.touch()
        # it stays until it is told to go, and leaves the last word to the orphans
        script = f"{TOOLS}{scenario}\ntell()\nprint('done', flush=True)\nsys.stdin.read()\n"
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, str(self.truth)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.session = Session(self.process.pid)

    def close(self) -> None:
        self.session.end()
        self.process.communicate()

    def told_seconds(self) -> tuple[float, float]:
        """CPU seconds that all processes used, and the possible excess, as each ends after its last report."""
        last = {}
        for line in self.truth.read_text().splitlines():
            pid, seconds = line.split()
            last[pid] = float(seconds)
        truth_s = sum(last.values())
        return truth_s, 0.02 * truth_s + 0.02 * len(last)


@pytest.fixture
def child(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Child]:
    made = Child(tmp_path, request.param)
    yield made
    made.close()


def needs_group(session: Session) -> Group:
    if session._group is None:
        pytest.skip("no cgroup v2 that one may write to")
    return session._group


@pytest.mark.parametrize("child", SCENARIOS.values(), ids=SCENARIOS, indirect=True)
def test_what_processes_used_is_counted_whoever_reaps_them(way: str, child: Child) -> None:
    if way == "group":
        needs_group(child.session)
    looks = []
    assert child.process.stdout is not None
    done = threading.Thread(target=child.process.stdout.readline)
    done.start()
    while done.is_alive() or len(child.session.processes()) > 1:
        looks.append(child.session.cpu_seconds())
        time.sleep(0.3)
    looks.append(child.session.cpu_seconds())
    assert looks == sorted(looks)
    truth_s, off_s = child.told_seconds()
    assert truth_s > 1, "enough to tell 2 % of it, on a busy host too"
    assert looks[-1] == pytest.approx(truth_s, abs=off_s)
    child.close()
    assert child.session.cpu_seconds() >= looks[-1]
    assert child.session.cpu_seconds() == pytest.approx(truth_s, abs=off_s)


MEMORY = """
def hold():
    kept = b"x" * 200_000_000
    time.sleep(0.8)

reap(start(hold))
"""


@pytest.mark.parametrize("child", [MEMORY], indirect=True)
@pytest.mark.usefixtures("way")
def test_the_peak_of_memory_is_seen_between_two_questions(child: Child) -> None:
    assert child.process.stdout is not None
    child.process.stdout.readline()
    assert child.session.rss_bytes() < 100e6
    assert 200e6 < child.session.peak_rss_bytes() < 300e6
    child.session.forget_peak()
    assert child.session.peak_rss_bytes() < 100e6


def looking(session: int) -> bool:
    return any(thread.name == f"session-{session}" for thread in threading.enumerate())


def gone(leader: int) -> bool:
    deadline = time.monotonic() + 5
    while looking(leader) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not looking(leader)


@pytest.mark.usefixtures("way")
def test_its_thread_and_its_group_go_with_the_session() -> None:
    for how in ("it is ended", "its leader ends", "nobody holds it"):
        with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
            session: Session | None = Session(process.pid)
            assert session is not None
            assert looking(process.pid)
            group = session._group
            if how == "it is ended":
                session.end()
            elif how == "its leader ends":
                process.kill()
            else:
                session = None
                gc.collect()
            assert gone(process.pid), how
            process.kill()
            process.wait()
            session = None
            gc.collect()
            if group is not None:
                if how == "nobody holds it":  # it ran on
                    group.remove()
                assert not group.path.exists()


def test_a_group_that_a_dead_owner_left_is_removed() -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        first = Session(process.pid)
        parent = needs_group(first).path.parent
        dead = subprocess.Popen(["true"])
        dead.wait()
        left = parent / f"streamgauge-{dead.pid}-1"
        left.mkdir()
        with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
            session = Session(other.pid)
            session.end()
        assert not left.exists()
        first.end()


def test_a_group_holds_what_leaves_the_session(tmp_path: Path) -> None:
    child = Child(tmp_path, "sys.stdin.readline()\nreap(start(lambda: (os.setsid(), start(burn, 0.5))))")
    try:
        needs_group(child.session)
        assert child.process.stdin is not None
        assert child.process.stdout is not None
        child.process.stdin.write(b"\n")  # it is in the group now
        child.process.stdin.flush()
        child.process.stdout.readline()
        deadline = time.monotonic() + 10
        while child.told_seconds()[0] < 0.5 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.1)
        assert child.session.cpu_seconds() == pytest.approx(child.told_seconds()[0], abs=0.03)
    finally:
        child.close()


def test_a_process_that_looks_at_itself_stays_in_its_group() -> None:
    script = (
        "import os; from streamgauge.bench.engines.processes import Session; s = Session(os.getpid());"
        "print(s._group, s.cpu_seconds() > 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, start_new_session=True)
    assert done.stdout.split() == ["None", "True"], done.stderr


def test_end_ends_what_ignores_the_request() -> None:
    script = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        session = Session(process.pid)
        session.end(0.3)
        assert session.processes() == []
        assert process.wait() == -signal.SIGKILL


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_compiler_threads_of_a_jvm_are_kept_off_the_pinned_cpus() -> None:
    code = """
import sys, threading, time
def named(name):
    open(f"/proc/self/task/{threading.get_native_id()}/comm", "w").write(name)
    time.sleep(60)
for name in ("C2 CompilerThre", "Executor task l"):
    threading.Thread(target=named, args=(name,), daemon=True).start()
time.sleep(0.2)
print("there", flush=True)
time.sleep(60)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    session = Session(child.pid)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        first, *others = sorted(os.sched_getaffinity(0))
        session.pin([first])
        pinned = {
            (thread / "comm").read_text().strip(): os.sched_getaffinity(int(thread.name))
            for thread in Path(f"/proc/{child.pid}/task").iterdir()
        }
    finally:
        session.end()
        child.wait()
    assert pinned.pop("C2 CompilerThre") == set(others)
    assert pinned.pop("Executor task l") == {first}
    assert set(map(frozenset, pinned.values())) == {frozenset({first})}


BUSY = [sys.executable, "-c", "import os\nif os.fork(): print(1, flush=True)\nwhile True: pass"]


def ticks(session: Session) -> int:
    """CPU time of a session's processes, in the kernel's ticks."""
    stats = [Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split() for process in session.processes()]
    return sum(int(stat[11]) + int(stat[12]) for stat in stats)


def test_nothing_runs_while_a_session_is_frozen() -> None:
    leader = subprocess.Popen(BUSY, start_new_session=True, stdout=subprocess.PIPE)
    session = Session(leader.pid)
    try:
        assert leader.stdout is not None
        assert leader.stdout.readline()
        with session.frozen():
            before = ticks(session)
            time.sleep(0.3)
            assert ticks(session) == before
        time.sleep(0.3)
        assert ticks(session) > before
    finally:
        session.end(0.5)
        leader.wait()


def test_a_frozen_session_wakes_though_its_owner_is_killed() -> None:
    leader = subprocess.Popen(BUSY, start_new_session=True, stdout=subprocess.PIPE)
    session = Session(leader.pid)
    owner = (
        "import os; from streamgauge.bench.engines.processes import Session\n"
        f"with Session({leader.pid}).frozen(1.0): os.kill(os.getpid(), 9)"
    )
    try:
        assert leader.stdout is not None
        assert leader.stdout.readline()
        subprocess.run([sys.executable, "-c", owner], check=False, timeout=60)
        before = ticks(session)
        deadline = time.monotonic() + 10
        while ticks(session) == before:
            assert time.monotonic() < deadline, "still frozen"
            time.sleep(0.05)
    finally:
        session.end(0.5)
        leader.wait()


def test_a_thread_that_ends_meanwhile_leaves_no_other_unpinned(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    session = Session(child.pid)
    gone = Path("/proc/0/task/1")
    monkeypatch.setattr(processes, "_threads", lambda pid: [gone, Path(f"/proc/{pid}/task/{pid}")])
    try:
        first = min(os.sched_getaffinity(0))
        session.pin([first])
        assert os.sched_getaffinity(child.pid) == {first}
    finally:
        session.end()
        child.wait()
