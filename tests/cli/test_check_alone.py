"""`check` reads a file and its sources on this machine, and nothing else: hostile files, a listener, marker code."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from streamgauge.base import answering, places
from streamgauge.config.systems import naming_code
from tests.command import Answer, Call, run
from tests.hostile.draw import MARK, MARKERS, SOUND
from tests.hostile.strangers import stranger

FILES = 50
#: runs `check` on each file in a process that notes what it imports, starts, loads and connects to
CHILD = """
import contextlib, io, json, os, sys

seen = []
EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen", "os.system", "os.exec",
          "os.posix_spawn", "os.startfile", "ctypes.dlopen")

def hook(event, arguments):
    if event in EVENTS and noting and arguments[0] is not None:  # the C library itself
        seen.append([event, repr(arguments)[:200]])
    if event == "import" and "marker" in str(arguments[0]):
        seen.append([event, str(arguments[0])])

noting = False
sys.addaudithook(hook)
import croniter, duckdb, pandas, confluent_kafka  # the first of them asks for the kind of machine
from streamgauge.app import cli
from streamgauge.bench.measure import checks
from streamgauge.streams.stages import reach

sys.path.insert(0, os.getcwd())
answers = []
for file in sys.argv[1:]:
    out, err, code, noting = io.StringIO(), io.StringIO(), 0, True
    sys.argv = ["streamgauge", "check", file, "--artifacts", "artifacts"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
    noting = False
    answers.append([file, code, out.getvalue(), err.getvalue()])
maps = [line for line in open("/proc/self/maps") if "libmarker" in line]
print(json.dumps({"seen": seen, "maps": maps, "answers": answers}))
"""


def _placed(folder: Path) -> None:
    for name, data in MARKERS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o755)
    modules = map(__import__, ("_json", "_heapq"))
    library = next(file for module in modules if (file := getattr(module, "__file__", None)) is not None)
    shutil.copy(library, folder / "libmarker.so")  # any library: nobody shall load it
    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / "pipe.sql")


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("strangers")
    _placed(folder)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        names = []
        for number in range(FILES):
            draw = stranger(random.Random(f"alone {number}"), host)
            names.append(f"b{number}.yaml")
            (folder / names[-1]).write_bytes(draw.files["b.yaml"])
        (folder / "f.csv").write_bytes(b"t,v\n1,2\n3,4\n2,5\n")
        environment = os.environ | {"AWS_SECRET_ACCESS_KEY": "hunter2-of-the-cloud", "PYTHONPATH": os.getcwd()}
        command = [sys.executable, "-c", CHILD, *names]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr[-2000:]
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    return folder, json.loads(done.stdout)


def test_check_on_strangers_files_connects_imports_loads_and_starts_nothing(
    checked: tuple[Path, dict[str, Any]],
) -> None:
    folder, found = checked
    assert found["seen"] == []
    assert found["maps"] == []
    assert [path.name for path in folder.iterdir() if path.name.startswith("ran-")] == []


def test_check_of_a_stranger_s_file_is_a_plan_or_one_line_without_a_secret(
    checked: tuple[Path, dict[str, Any]],
) -> None:
    codes = set()
    for file, code, out, err in checked[1]["answers"]:
        assert "Traceback" not in err, (file, err)
        assert code in (0, 2), (file, err)
        assert bool(err) == (code == 2), (file, err)
        assert "hunter2" not in out + err
        assert MARK not in out + err, (file, err)
        codes.add(code)
    assert codes == {0, 2}


class _Silent(fs.FileSystemHandler):
    """A store that never says anything."""

    def get_file_info(self, _: list[str]) -> list[fs.FileInfo]:
        time.sleep(60)
        return []

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(name)


_Silent.__abstractmethods__ = frozenset()


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_store", lambda _, host: (fs.PyFileSystem(_Silent()), host))


def written(folder: Path, **keys: Any) -> Path:
    (folder / "f.csv").write_text("t,v\n1,2\n3,4\n2,5\n")
    (folder / "b.yaml").write_text(json.dumps(SOUND | keys))
    return folder / "b.yaml"


def call(*words: object) -> Answer:
    return run(Call([str(word) for word in words]))


@pytest.mark.usefixtures("silent")
def test_a_store_that_says_nothing_is_not_asked_by_check_and_given_up_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "FIRST_ANSWER_S", 0.3)
    file = written(tmp_path, source=SOUND["source"] | {"files": ["f.csv", "gs://bucket/f.csv"]})
    plan = call("check", file, "--artifacts", tmp_path / "a", "--json").json
    assert [one["size"] for one in plan["sources"]] == [16, None]
    assert (plan["sample"], plan["events"]) == (None, {"key": None, "built": False})
    assert "on a store, not checked here" in call("check", file, "--artifacts", tmp_path / "a").out
    for command in (["check", "--connect"], ["run"]):
        began = time.monotonic()
        answer = call(*command, file, "--artifacts", tmp_path / "a")
        answer.refused("gs://bucket/f.csv: cannot be read: the store has not answered for 0.3 s")
        assert "connects to gs://bucket" in answer.err
        assert time.monotonic() - began < 20


@pytest.mark.usefixtures("silent")
def test_a_signal_ends_the_wait_for_a_store() -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            places.status("gs://bucket/f.csv")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("value", "is_code"),
    [
        ("200", False), ("2.5s", False), ("true", False), ("-Xms3g -Xmn1500m", False), ("", False),
        ("-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto", False),
        ("x.jar", True), ("-javaagent:x.jar", True), ("-Xmx2g -agentpath:/x.so", True), ("-XX:OnError=7", True),
        ("-XX:OnOutOfMemoryError=kill", True), ("-XX:VMOptionsFile=x", True), ("@x", True), ("-cp x", True),
    ],
)  # fmt: skip
def test_a_setting_that_may_name_code(value: str, is_code: bool) -> None:
    assert naming_code({"spark.x": value}) == (["spark.x"] if is_code else [])


EVERYTHING = {
    "metrics": {"sinks": [{"type": "my_sinks:Lines"}, {"type": "http", "url": "https://m.example.org:8443/k?token=T",
                                                      "headers_from_env": {"X-Key": "METRICS_KEY"}}]},
    "search": {"verdict": "my_verdicts:steady"},
    "experiments": [{"name": "e", "target_percent": 20, "delay": {"distribution": "my_delays:late", "max": "5s"}}],
    "systems": [
        {"name": "own", "engine": "my_engine:Engine"},
        {"name": "s", "engine": "spark", "master": "spark://cluster:7077", "conf": {"spark.jars": "x.jar"}},
        {"name": "j", "engine": "job", "bootstrap": "broker:9093", "command": [sys.executable, "job.py"],
         "security": {"sasl.password": "${BROKER_PASSWORD}"}},
    ],
    "nightly": {"webhook": {"url_variable": "HOOK"}, "notifiers": [{"notifier": "their.Notifier"}],
                "apprise_variable": "SERVICES"},
    "replay": {"remote": ["far:7000"], "token_variable": "TOKEN"},
}  # fmt: skip


def test_check_says_what_a_run_would_reach_and_tries_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKER_PASSWORD", "hunter2")
    for name in ("METRICS_KEY", "HOOK", "SERVICES", "TOKEN"):
        monkeypatch.delenv(name, raising=False)
    file = written(tmp_path, **EVERYTHING)
    (tmp_path / "job.py").touch()
    plan = call("check", file, "--artifacts", tmp_path / "a", "--json").json
    assert [(one["kind"], one["key"], one["name"], one.get("set")) for one in plan["reached"]] == [
        ("code", "experiments.e.delay.distribution", "my_delays:late", None),
        ("code", "systems.own.engine", "my_engine:Engine", None),
        ("host", "systems.s.master", "spark://cluster:7077", None),
        ("code", "systems.s.conf", "spark.jars", None),
        ("program", "systems.j.command", f"{sys.executable} job.py", None),
        ("host", "systems.j.bootstrap", "broker:9093", None),
        ("variable", "systems.j.security", "BROKER_PASSWORD", True),
        ("code", "search.verdict", "my_verdicts:steady", None),
        ("host", "replay.remote", "far:7000", None),
        ("variable", "replay.token_variable", "TOKEN", False),
        ("code", "metrics.sinks.0.type", "my_sinks:Lines", None),
        ("host", "metrics.sinks.1.url", "https://m.example.org:8443", None),
        ("variable", "metrics.sinks.1.headers_from_env", "METRICS_KEY", False),
        ("variable", "nightly.webhook.url_variable", "HOOK", False),
        ("variable", "nightly.apprise_variable", "SERVICES", False),
        ("code", "nightly.notifiers", "their.Notifier", None),
    ]
    assert plan["experiments"] == [{"name": "e", "target_percent": 20.0, "key": None, "built": False}]
    told = call("check", file, "--artifacts", tmp_path / "a").out
    assert "runs the code my_engine:Engine  (systems.own.engine)" in told
    assert "reads the variable HOOK, not set here  (nightly.webhook.url_variable)" in told
    assert "Not checked here: check --connect tries" in told
    assert "hunter2" not in told


@pytest.mark.parametrize("command", [["check", "--connect"], ["run"], ["trial"], ["search"], ["release-check"]])
def test_what_executes_says_so_before_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    (tmp_path / "loud_verdict.py").write_text("import sys; print('LOADED', file=sys.stderr)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "loud_verdict", raising=False)
    systems = [{"name": name, "engine": "known"} for name in "ab"]
    release = {"rate": 100, "queries": []}
    file = written(tmp_path, search={"verdict": "loud_verdict:absent"}, systems=systems, release=release)
    cell = ["--experiment", "e", "--workload", "w", "--system", "a"]
    more: dict[str, list[str]] = {
        "trial": [*cell, "--rate", "9", "--seconds", "1"], "search": cell,
        "release-check": ["--baseline", "a", "--candidate", "b"],
    }  # fmt: skip
    answer = call(*command, file, "--artifacts", tmp_path / "a", *more.get(command[0], []))
    answer.refused("search.verdict: loud_verdict:absent cannot be loaded: AttributeError")
    assert answer.err.index("x: runs the code loud_verdict:absent  (search.verdict)") < answer.err.index("LOADED")
    assert "LOADED" not in call("check", file, "--artifacts", tmp_path / "a").err


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"search": {"verdict": "steady"}}, "search.verdict: found 'steady', allowed: recovery, or package.module:fu"),
        ({"search": {"verdict": "./x:y"}}, "search.verdict: found './x:y', allowed: recovery, or "),
        ({"metrics": {"sinks": [{"type": "nope"}]}}, "metrics.sinks.0.type: found 'nope', allowed: console, http, "),
        ({"experiments": [{"name": "e", "target_percent": 1, "delay": {"distribution": "nope"}}]},
         "experiment e: delay.distribution: found 'nope', allowed: uniform, "),
        ({"experiments": [{"name": "e", "target_percent": 1, "delay": {"distribution": "empirical",
                                                                       "profile": "pipe"}}]},
         "a device or a pipe, allowed: a regular file"),
        ({"systems": [{"name": name, "engine": "known"} for name in "ab"], "release": {"rate": 9}},
         "systems.a.engine: found known, which cannot run the queries; set release.queries: []"),
    ],
)  # fmt: skip
def test_names_are_checked_without_their_modules(tmp_path: Path, keys: dict[str, Any], said: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    call("check", written(tmp_path, **keys), "--artifacts", tmp_path / "a").refused(said)
