"""The adapter for Spark: a child spark-submit in its own process session, warm over many trials."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import socket
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, NotRequired

from streamgauge.base.errors import UserError
from streamgauge.base.units import PS
from streamgauge.bench.driver.system import Capabilities, Fault, NotStruck, TrialSetup, Unsupported
from streamgauge.bench.engines.processes import Led
from streamgauge.bench.engines.shares import InSession
from streamgauge.bench.engines.spark import queries
from streamgauge.bench.engines.spark.engine import one_watermark
from streamgauge.bench.engines.spark.progress import joined, planned_in
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.bench.workloads import Spec, find
from streamgauge.records.advice import ANSWERS
from streamgauge.records.rules import EngineRules, Rules
from streamgauge.records.trial import EngineBatch, SystemFigures

START_SECONDS = 120.0
ANSWER_SECONDS = 90.0
BEGIN_SECONDS = 210.0  # more than the application's own patience
LOOK_SECONDS = 0.5  # looking costs CPU on the machine that is measured
APPLICATION = Path(__file__).with_name("application.py")


class SparkFigures(SystemFigures):
    """Figures of a trial. rules: those that the session followed, by its own settings."""

    rules: NotRequired[Rules]


class SparkSystem(InSession):
    """Spark under test (driver/system.py has the methods). Only `alive` and `stop` are thread-safe."""

    #: .venv/bin/python -m benchmarks.state measured the bytes, with the state store hdfs
    late_rules = EngineRules("Spark", dict.fromkeys(ANSWERS, queries.RULES), window_bytes=286)

    def __init__(self, system: SparkSettings, work: Path) -> None:
        super().__init__(system, work)
        self._system, spared = system, system.spared
        faults: set[Fault] = {"kill", "restart", "cut", "rescale", "quota"}
        self.capabilities = Capabilities(
            continuous=system.mode == "real-time", pins=True, faults=frozenset(faults - {*spared}), spared=spared
        )
        self._session: Led | None = None
        self._control: socket.socket | None = None
        self._lines: IO[str] | None = None
        self._lock = threading.Lock()
        self._cpu = 0.0
        self._next_look = 0.0
        self._library: Path | None = None
        self._begun, self._is_rescaled = False, False
        self._setup: TrialSetup | None = None
        self._before: list[EngineBatch] = []  # micro-batches of the trial before the system was killed in it
        self._log_begin = 0  # of the process that runs
        system.jars()

    @property
    def session(self) -> Led | None:
        return self._session

    def rules(self, spec: Spec) -> Rules:
        return self._rules(spec, one_watermark(self._system.conf))

    def _rules(self, spec: Spec, is_shared: bool) -> Rules:
        interval_us = self._system.trigger.ps // PS["us"] or queries.BATCH_US
        return queries.rules(spec, interval_us, one_watermark=is_shared)

    def start(self) -> None:
        from streamgauge.bench.engines.spark import submit  # `check` asks for the rules alone, and knows no PySpark
        from streamgauge.streams.stages.session import check_master, library_zip

        check_master(self._system.master)
        self._work.mkdir(parents=True, exist_ok=True)
        self.failure = None
        self._library = self._library or library_zip()
        self._log_begin = self._log.stat().st_size if self._log.exists() else 0
        secret = secrets.token_hex(16)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            environment = submit.environment(self._system, self._library) | {
                "STREAMGAUGE_CONTROL_PORT": str(listener.getsockname()[1]),
                "STREAMGAUGE_CONTROL_SECRET": secret,
                "STREAMGAUGE_FILE_MANAGER": self._system.checkpoint_file_manager,
            }
            options = ["--py-files", str(self._library)]
            try:
                command = submit.command(self._system, APPLICATION, self._library.parent, options)
                self._session = Led(command, environment, self._log)
            except OSError as problem:
                self.stop()
                raise UserError(f"systems.{self.name}: spark-submit cannot be started: {problem}") from None
            except UserError:
                self.stop()
                raise
            try:
                self._given.begin(self._session)
                self._control = self._accept(listener, self._session)
                self._control.settimeout(START_SECONDS)
                self._lines = self._control.makefile("rw", encoding="utf-8")
                if not secrets.compare_digest(str(self._answer().get("secret")), secret):
                    raise UserError(
                        f"systems.{self.name}: another process connected to the control port instead of the system"
                    )
            except (OSError, ValueError) as problem:
                why = self._last_words() or str(problem)
                self.stop()
                raise UserError(f"systems.{self.name}: Spark did not start: {why}; see {self._log}") from None
            except UserError:
                self.stop()
                raise

    def begin_trial(self, setup: TrialSetup) -> None:
        """Starts the trial's query; once a query has begun, a later failure to begin invalidates its own trial only.

        Raises UserError for a query that the system does not take, or if none of its queries has begun yet.
        """
        spec = Spec.of(setup.workload, setup.columns, whole=True)
        try:
            queries.place(spec)
        except UserError as problem:
            raise Unsupported(f"systems.{self.name}: unsupported: {spec.query}", str(problem)) from None
        if find(spec.query).own_state and self._system.state_store != "rocksdb":
            raise UserError(f"systems.{self.name}.state_store: found hdfs, but {spec.query} needs rocksdb")
        self._spec = spec
        setup.work.mkdir(parents=True, exist_ok=True)
        self._setup, self._before = setup, []
        self._begin(setup, spec)

    def _begin(self, setup: TrialSetup, spec: Spec, *, resumed: bool = False) -> None:
        assert self._session is not None, "start first"
        self.failure = None  # forgets an earlier query's; a process that died is found again
        self._cpu = self._session.cpu_seconds()
        self._session.forget_peak()
        answer = self._ask(
            {
                "do": "begin",
                "attempt": setup.attempt,
                "endpoints": [asdict(endpoint) for endpoint in setup.endpoints],
                "spec": spec.to_dict(),
                "checkpoint": self._checkpoint(setup),
                "resumed": resumed,
                "batch_rows": self._system.batch_rows,
                "trigger_ms": self._system.trigger.ps // PS["ms"],
                "link": self._system.link,
                "mode": self._system.mode,
            },
            BEGIN_SECONDS,
        )
        if why := answer.get("unsupported"):
            raise Unsupported(f"systems.{self.name}: unsupported: {spec.query} in mode {self._system.mode}", why)
        if not answer.get("ok"):
            self.failure = self.failure or f"the query did not begin: {answer.get('error')}"
            if answer and not self._begun:
                raise UserError(f"systems.{self.name}: {self.failure}")
            return  # `alive` reports it
        self._begun = True

    def end_trial(self, timeout_s: float) -> SparkFigures:
        """Returns the figures of `application.end`; on a local master also cpu_seconds and rss_bytes (the peak)."""
        answer = self._ask({"do": "end", "timeout_s": timeout_s}, timeout_s + ANSWER_SECONDS)
        figures: SparkFigures = answer.get("figures", {"batches": [], "epochs": 0, "drained": False})
        if self._before:
            figures["batches"] = joined(self._before, figures.get("batches") or ())
        if self._session is not None and self._system.is_local:
            figures["cpu_seconds"] = round(self._session.cpu_seconds() - self._cpu, 3)
            figures["rss_bytes"] = self._session.peak_rss_bytes()
        if "one_watermark" in answer:
            figures["rules"] = self._rules(self._spec, answer["one_watermark"])
        figures["failure"] = figures.get("failure") or self.failure or answer.get("error")
        if "error" in answer:  # its query may go on in that process
            self.failure = self.failure or f"the query did not end: {answer['error']}"
        if self._is_rescaled:
            self.stop()  # the next trial has a process with the threads of the settings
        return figures

    def brace(self, fault: Fault) -> None:
        """Takes over what Spark knows of its micro-batches; its checkpoint has those that follow until the fault."""
        if fault in ("kill", "rescale"):
            answer = self._ask({"do": "account"}, ANSWER_SECONDS)
            if "batches" not in answer:
                why = self.failure or answer.get("error")
                raise NotStruck(f"Spark gives no account of its micro-batches: {why}")
            self._before = answer["batches"]

    def strike(self, fault: Fault) -> None:
        """Kills all processes of Spark, or the executors of a cluster within it, which it starts again."""
        if self._session is not None:
            self._session.kill("CoarseGrainedExecutorBackend" if fault == "restart" else "")

    def resume(self) -> None:
        """Starts Spark again, and the query from its checkpoint."""
        assert self._setup is not None, "begin a trial first"
        frames = find(self._setup.workload.query).streams
        checkpoint = re.sub(r"^file:(//)?(?=/)", "", self._checkpoint(self._setup))
        self._before = joined(planned_in(Path(checkpoint), frames), self._before)
        library, self._library = self._library, None  # to pack it anew takes time that is not Spark's
        self.stop()
        self._library = library
        self.start()
        self._begin(self._setup, self._spec, resumed=True)

    def rescale(self) -> None:
        """Kills Spark, and starts it with twice the threads. The checkpoint keeps the number of shuffle partitions."""
        self.strike("kill")
        own = self._system
        try:
            self._system = own.model_copy(update=own.numbers(2 * (own.workers or 1))["master"])
            self.resume()
        finally:
            self._system, self._is_rescaled = own, True

    def _checkpoint(self, setup: TrialSetup) -> str:
        return f"{(self._system.checkpoints or str(setup.work)).rstrip('/')}/{setup.attempt}"

    def cpu_seconds(self) -> float | None:
        return super().cpu_seconds() if self._system.is_local else None

    def vitals(self) -> dict[str, float]:
        """Returns memory, files, heap of the driver, and state; without memory and files on a cluster."""
        vitals: dict[str, float] = self._ask({"do": "vitals"}, ANSWER_SECONDS).get("vitals", {})
        return {**vitals, **(super().vitals() if self._system.is_local else {})}

    def alive(self) -> bool:
        if time.monotonic() > self._next_look and not self._lock.locked():  # a command under way reports by itself
            self._next_look = time.monotonic() + LOOK_SECONDS
            answer = self._ask({"do": "state"}, ANSWER_SECONDS)
            if answer.get("failure"):
                self.failure = f"the query failed: {answer['failure']}"
        if self.failure is None and (self._session is None or self._session.exit_code() is not None):
            self.failure = f"the system died: {self._exit_words() or 'it was not started'}"
        return self.failure is None

    def stop(self) -> None:
        self._is_rescaled = False
        if self._lines is not None and self._control is not None:
            with suppress(OSError, ValueError):
                self._control.settimeout(1.0)
                self._lines.write('{"do": "exit"}\n')
                self._lines.flush()
            if self._session is not None:
                with suppress(subprocess.TimeoutExpired):
                    self._session.leader.wait(5.0)
            self._control.close()
            self._lines = self._control = None
        if self._session is not None:
            self._session.end()
            self._session = None
        if self._library is not None:
            shutil.rmtree(self._library.parent, ignore_errors=True)
            self._library = None

    @property
    def _log(self) -> Path:
        return self._work / "system.log"

    def _accept(self, listener: socket.socket, session: Led) -> socket.socket:
        listener.settimeout(0.2)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                return listener.accept()[0]
            except TimeoutError:
                if (code := session.exit_code()) is not None:
                    raise OSError(f"spark-submit ended with code {code}") from None
        raise OSError(f"no answer within {START_SECONDS:.0f} s")

    def _ask(self, command: dict[str, Any], patience_s: float) -> dict[str, Any]:
        """Sends a command and returns its answer; {} when the system is gone, and then `failure` says why."""
        with self._lock:
            try:
                if self._lines is None or self._control is None:
                    raise OSError("it was not started")
                self._control.settimeout(patience_s)
                self._lines.write(json.dumps(command) + "\n")
                self._lines.flush()
                return self._answer()
            except (OSError, ValueError) as problem:
                self.failure = self.failure or f"the system died: {self._exit_words() or problem}"
                return {}

    def _answer(self) -> dict[str, Any]:
        assert self._lines is not None
        line = self._lines.readline()
        if not line:
            raise OSError("it closed its control connection")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _exit_words(self) -> str | None:
        if self._session is None:
            return None
        try:
            code = self._session.leader.wait(2.0)  # its connection may close a little before it ends
        except subprocess.TimeoutExpired:
            return None
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"

    def _last_words(self) -> str | None:
        """The last line of the log that names an error, and the next one; None without such a line."""
        try:
            lines = self._log.read_bytes()[self._log_begin :].decode(errors="replace").splitlines()
        except OSError:
            return None
        errors = [number for number, line in enumerate(lines) if re.search(r"(Error|Exception|ERROR)\b", line)]
        return "; ".join(line.strip() for line in lines[errors[-1] :][:2])[:300] if errors else None
