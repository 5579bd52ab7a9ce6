"""A standalone Flink cluster of this host, a job manager and a task manager in one process session; its REST API."""

from __future__ import annotations

import io
import json
import os
import re
import time
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import urllib3
import yaml

from streamgauge.base import variables
from streamgauge.base.errors import UserError
from streamgauge.bench.driver.ports import free_port
from streamgauge.bench.engines.flink.settings import INTERVAL, FlinkSettings, nested
from streamgauge.bench.engines.processes import Led

START_SECONDS = 120.0
FRESH_MS = 100  # the age from which metrics and states of jobs are asked for anew
_FOREVER_MS = 10**10  # four months
_CPU_TIME = "Status.JVM.CPU.Time"
_LATE = "numlaterecordsdropped"  # of a join also with left and right before it
_RAISED = re.compile(r"(?:Caused by: )?([\w.$]+(?:Exception|Error|Refused)(?:: .*)?)$")
#: names of a task manager's vitals, and of Flink's metrics
_HEAP = {
    "heap": "Status.JVM.Memory.Heap.Used",
    "heap_limit": "Status.JVM.Memory.Heap.Max",
    "collections": "Status.JVM.GarbageCollector.All.Count",
}
Json = dict[str, Any]
#: starts both managers, and the task manager again whenever it dies, as a resource manager would
_SCRIPT = """
"$FLINK_HOME/bin/jobmanager.sh" start-foreground > jobmanager.log 2>&1 &
while :; do "$FLINK_HOME/bin/taskmanager.sh" start-foreground >> taskmanager.log 2>&1; done &
wait %1
kill -9 0
"""


class Cluster:
    """Starts Flink's processes, and asks them over REST. Raises UserError if they do not come up."""

    def __init__(self, system: FlinkSettings, work: Path) -> None:
        self._system, self._work, self._checkpoints = system, work, work / "checkpoints"
        self._home = system.home()
        self._port = free_port()
        self._pool = urllib3.PoolManager(timeout=urllib3.Timeout(total=30.0), retries=False)
        self._jar = ""
        work.mkdir(parents=True, exist_ok=True)
        self._write_settings(work / "conf")
        ours = {"FLINK_HOME": str(self._home), "FLINK_CONF_DIR": str(work / "conf"), "FLINK_LOG_DIR": str(work)}
        self.session = Led(["bash", "-c", _SCRIPT], _environment() | ours, work / "cluster.log", work)
        try:
            self._wait()
            self._jar = self._upload()
        except BaseException:  # Ctrl-C, too: nobody else knows its processes yet
            self.stop()
            raise

    def run(self, argument: Json, parallelism: int, savepoint: str | None = None) -> str:
        """Submits a job of the part in Java; returns its id. Raises UserError with Flink's reason."""
        given = {"entryClass": "streamgauge.Job", "programArgsList": [json.dumps(argument)], "parallelism": parallelism}
        given |= {"savepointPath": savepoint} if savepoint else {}
        return str(self.ask("POST", f"/jars/{self._jar}/run", given)["jobid"])

    def job(self, job: str) -> Json:
        """State of a job and of its operators: {"state": …, "vertices": [{"status": …}]}."""
        state: Json = self.ask("GET", f"/jobs/{job}")
        return state

    def state_bytes(self, job: str) -> int | None:
        """The largest state in a checkpoint of a job; None if it completed none, or does not answer."""
        try:
            checkpoints = self.ask("GET", f"/jobs/{job}/checkpoints")
        except UserError:
            return None
        largest: int = checkpoints["summary"]["state_size"]["max"]
        return largest if checkpoints["counts"]["completed"] else None

    def checkpoints(self, job: str) -> int:
        """Number of checkpoints that a job has completed."""
        return int(self.ask("GET", f"/jobs/{job}/checkpoints")["counts"]["completed"])

    def last_checkpoint(self, job: str) -> str | None:
        """Place of the last checkpoint that a job completed, which outlives the cluster; None if it completed none."""
        whole = [file.parent for file in self._checkpoints.glob(f"{job}/chk-*/_metadata")] if job else []
        return max(whole, key=lambda place: int(place.name.removeprefix("chk-"))).as_uri() if whole else None

    def vitals(self, job: str) -> dict[str, float]:
        """Heap in use of all task managers, its limit and collections, and the state in the job's last checkpoint."""
        try:
            managers = self.ask("GET", "/taskmanagers")["taskmanagers"]
            heaps = [self._metrics(one["id"], _HEAP.values()) for one in managers]
            last = self.ask("GET", f"/jobs/{job}/checkpoints")["latest"]["completed"] if job else None
        except UserError:
            return {}
        known = all(len(one) == len(_HEAP) for one in heaps)  # a metric that was not asked for before is not known
        found = {name: sum(one[metric] for one in heaps) for name, metric in _HEAP.items()} if known else {}
        return found if last is None else {**found, "state_bytes": float(last["state_size"])}

    def _metrics(self, manager: str, names: Iterable[str]) -> dict[str, float]:
        """Metrics of a task manager, as far as they are known."""
        answer = self.ask("GET", f"/taskmanagers/{manager}/metrics?get={','.join(names)}")
        return {one["id"]: float(one["value"]) for one in answer}

    def reason(self, job: str) -> str:
        """Cause of a job's failure: the innermost exception, in one line."""
        history = self.ask("GET", f"/jobs/{job}/exceptions?maxExceptions=1")
        entries = history.get("exceptionHistory", {}).get("entries") or [{}]
        return _innermost(entries[0].get("stacktrace"))

    def stop_job(self, job: str, patience_s: float = 60.0) -> str:
        """Stops a job with a savepoint; returns its place. Raises UserError with Flink's reason if it does not stop."""
        given = {"targetDirectory": self._checkpoints.as_uri(), "drain": False}
        asked = self.ask("POST", f"/jobs/{job}/stop", given)["request-id"]
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            savepoint = self.ask("GET", f"/jobs/{job}/savepoints/{asked}")
            if savepoint["status"]["id"] == "COMPLETED":
                if place := savepoint["operation"].get("location"):
                    return str(place)
                why = _innermost(savepoint["operation"].get("failure-cause", {}).get("stack-trace"))
                raise UserError(f"systems.{self._system.name}: Flink made no savepoint: {why}")
            time.sleep(0.05)
        raise UserError(f"systems.{self._system.name}: Flink made no savepoint within {patience_s:.0f} s")

    def cancel(self, job: str, patience_s: float = 20.0) -> None:
        """Cancels a job, whatever it is doing, and waits until it has ended."""
        self.ask("PATCH", f"/jobs/{job}?mode=cancel")
        deadline = time.monotonic() + patience_s
        while self.job(job)["state"] not in ("CANCELED", "FAILED", "FINISHED") and time.monotonic() < deadline:
            time.sleep(0.05)

    def late_dropped(self, job: str) -> int | None:
        """Rows dropped as late, by the counters of Flink's own operators; None if a restart has reset them."""
        state = self.job(job)
        if state["timestamps"].get("RESTARTING"):
            return None
        self._renew_metrics()
        total = 0
        for vertex in state["vertices"]:
            place = f"/jobs/{job}/vertices/{vertex['id']}/subtasks/metrics"
            names = [metric["id"] for metric in self.ask("GET", place) if _LATE in metric["id"].lower()]
            if names:
                total += sum(int(metric["sum"]) for metric in self.ask("GET", f"{place}?get={quote(','.join(names))}"))
        return total

    def _renew_metrics(self, patience_s: float = 30.0) -> None:
        """Waits until Flink holds metrics that it has read since the call. Raises UserError if it takes too long."""
        managers = self.ask("GET", "/taskmanagers")["taskmanagers"]  # one, or none if it has died
        deadline = time.monotonic() + patience_s
        # The CPU time differs from one reading to the next: the last one that is known, then one that may have been
        # under way, and one that has begun since. To ask for metrics starts a reading.
        cpu_times: set[float] = set()
        while len(cpu_times) < 3:
            if time.monotonic() > deadline:
                raise UserError(f"systems.{self._system.name}: Flink read no metrics anew within {patience_s:.0f} s")
            for manager in managers:
                cpu_times.update(self._metrics(manager["id"], [_CPU_TIME]).values())
            time.sleep(FRESH_MS / 4000)

    def version(self) -> str:
        return str(self.ask("GET", "/config")["flink-version"])

    def ask(self, method: str, path: str, body: Json | None = None, fields: Json | None = None) -> Any:
        """Raises UserError with the reason that the cluster gives, or if it is gone."""
        try:
            answer = self._pool.request(method, f"http://127.0.0.1:{self._port}{path}", json=body, fields=fields)
            content: Any = json.loads(answer.data) if answer.data else {}
        except (urllib3.exceptions.HTTPError, ValueError) as problem:
            raise UserError(f"systems.{self._system.name}: Flink does not answer: {problem}") from None
        if answer.status >= 400:
            errors = "\n".join(map(str, content.get("errors", [])))
            raise UserError(f"systems.{self._system.name}: {_innermost(errors or str(answer.status))}")
        return content

    def stop(self) -> None:
        self.session.end(1.0)

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.session.exit_code() is None:
            with suppress(UserError):
                if self.ask("GET", "/overview")["taskmanagers"] == 1:
                    return
            time.sleep(0.1)
        alive = self.session.exit_code() is None
        how = f"did not start within {START_SECONDS:.0f} s" if alive else "ended while it started"
        raise UserError(f"systems.{self._system.name}: Flink {how}; see {self._work}/*.log")

    def _upload(self) -> str:
        """Uploads an empty jar: the classes are in lib/, so that they stay compiled from one job to the next."""
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as jar:
            jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nMain-Class: streamgauge.Job\n")
        fields = {"jarfile": ("streamgauge.jar", made.getvalue(), "application/x-java-archive")}
        return str(self.ask("POST", "/jars/upload", fields=fields)["filename"]).rpartition("/")[2]

    def _write_settings(self, place: Path) -> None:
        place.mkdir(exist_ok=True)
        for name in ("log4j-console.properties", "logback-console.xml"):
            (place / name).write_bytes((self._home / "conf" / name).read_bytes())
        given = yaml.safe_load((self._home / "conf" / "config.yaml").read_text())
        java = given["env"]["java"]["opts"]["all"]
        if self._system.cpus:  # it will be pinned to them when it is warm
            java += f" -XX:ActiveProcessorCount={len(self._system.cpus)}"
        settings: dict[str, object] = {
            "env.java.opts.all": java,
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.bind-host": "127.0.0.1",
            "jobmanager.rpc.port": free_port(),
            "jobmanager.memory.process.size": "1g",
            "rest.address": "127.0.0.1",
            "rest.bind-address": "127.0.0.1",
            "rest.port": self._port,
            "taskmanager.host": "127.0.0.1",
            "taskmanager.bind-host": "127.0.0.1",
            "taskmanager.memory.process.size": self._system.memory,
            # twice what a job needs: the last one may still be ending
            "taskmanager.numberOfTaskSlots": 2 * self._system.parallelism,
            "state.backend.type": "rocksdb" if self._system.state_store == "rocksdb" else "hashmap",
            INTERVAL: "1s",
            "execution.checkpointing.storage": "filesystem",
            "execution.checkpointing.dir": self._checkpoints.as_uri(),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 5,
            "restart-strategy.fixed-delay.delay": "500ms",
            # Flink's own five minutes are for the start alone: after them a job whose task manager has died fails at
            # once, before the next one is there
            "resourcemanager.standalone.start-up-time": _FOREVER_MS,
            "io.tmp.dirs": str(self._work),
            "web.upload.dir": str(self._work / "jars"),
            "metrics.fetcher.update-interval": f"{FRESH_MS}ms",
            "web.refresh-interval": f"{FRESH_MS}ms",  # else a job is seen to run 3 s after it does
            # metrics are read one reading at a time: one of a task manager that died under it holds up all others
            "web.timeout": "20s",
            "heartbeat.interval": "1s",
            "heartbeat.timeout": "8s",
            **variables.filled(self._system.conf, f"systems.{self._system.name}.conf"),
        }
        try:
            text = yaml.safe_dump(nested(settings))
        except ValueError as problem:
            raise UserError(f"systems.{self._system.name}.conf: {problem}") from None
        file = place / "config.yaml"
        file.touch(0o600)  # it may hold secrets
        file.chmod(0o600)
        file.write_text(text)


def _innermost(trace: str | None) -> str:
    """The innermost exception of a stack trace, in one line."""
    lines = (trace or "no reason given").splitlines()
    causes = [one[1] for one in map(_RAISED.match, lines) if one]
    return (causes or lines)[-1][:500]


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("FLINK_", "HADOOP_", "HBASE_"))}
