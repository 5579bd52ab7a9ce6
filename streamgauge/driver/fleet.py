"""Driver processes: those of this host are started once for many trials, watched, ended; remote ones are found."""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from streamgauge.config import Replay
from streamgauge.driver.client import Connection, WireError
from streamgauge.driver.process import TOKEN
from streamgauge.driver.replay import wire_schema
from streamgauge.driver.system import Endpoint
from streamgauge.errors import UserError
from streamgauge.units import Tick

START_SECONDS = 120.0
END_SECONDS = 10.0


class Drivers(Protocol):
    """Driver processes wherever they run."""

    @property
    def tick(self) -> Tick: ...

    @property
    def columns(self) -> dict[str, str]: ...

    @property
    def line(self) -> bool: ...

    @property
    def endpoints(self) -> tuple[Endpoint, ...]: ...

    def start(self) -> None: ...

    def dead(self) -> str | None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def drivers(
    stream: Path,
    replay: Replay,
    *,
    tick: Tick,
    columns: dict[str, str],
    line: bool = False,
    salted: Sequence[str] = (),
) -> Drivers:
    """Those at replay.remote, or else processes of this host."""
    if replay.remote:
        return RemoteDrivers.at(replay, tick=tick, columns=columns, line=line)
    return Fleet(stream, replay, tick=tick, columns=columns, line=line, salted=salted)


@dataclass(frozen=True)
class RemoteDrivers:
    """Processes that somebody started by hand, on any host: `streamgauge driver … --share i/n`."""

    endpoints: tuple[Endpoint, ...]
    tick: Tick
    columns: dict[str, str]
    line: bool = False

    @classmethod
    def at(cls, replay: Replay, *, tick: Tick, columns: dict[str, str], line: bool = False) -> Self:
        """Asks each for what it serves. Raises UserError when one is away, or serves something else."""
        token = os.environ.get(replay.token_variable) if replay.token_variable else ""
        if token is None:
            raise UserError(
                f"replay.token_variable: the environment has no {replay.token_variable}; put the drivers' token there"
            )
        endpoints, options = [], f"--columns {','.join(columns)}" + (" --line" if line else "")
        for address in replay.remote:
            host, _, port = address.rpartition(":")
            endpoint = Endpoint(host, int(port), token=token, cafile=replay.cafile)
            try:
                with Connection(endpoint) as asked:
                    endpoints.append(replace(endpoint, partitions=asked.partitions))
                    found = asked.schema.names
            except WireError as problem:
                raise UserError(f"replay.remote: {problem}; is `streamgauge driver` running there?") from None
            if found != wire_schema(columns, line=line).names:
                raise UserError(f"replay.remote: {address} sends {', '.join(found)}; start it with {options}")
        partitions = sum(endpoint.partitions for endpoint in endpoints)
        if partitions != replay.partitions:
            raise UserError(
                f"replay.partitions: found {replay.partitions}, but the drivers at replay.remote serve {partitions}; "
                "start each with the same --partitions and its own --share i/n"
            )
        return cls(tuple(endpoints), tick, columns, line)

    def start(self) -> None:
        """Whoever started them keeps them running."""

    def dead(self) -> str | None:
        """Nothing is known of them but their connections."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Fleet:
    """`with Fleet(...) as fleet: run_trial(system, fleet, …)`; they end with the block, or with this process.

    stream: the directory of a finished stream artifact. columns: the declared columns to send, all if None.
    salted: the key columns of `densify`. line: send the original line too.
    """

    def __init__(
        self,
        stream: Path,
        replay: Replay,
        *,
        tick: Tick,
        columns: dict[str, str],
        line: bool = False,
        salted: Sequence[str] = (),
    ) -> None:
        self.tick, self.columns, self.line = tick, columns, line
        if replay.processes > replay.partitions:
            raise UserError(
                f"replay.processes: found {replay.processes}, allowed: at most replay.partitions {replay.partitions}"
            )
        self._commands = [_command(stream, replay, i, columns, line, salted) for i in range(replay.processes)]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._endpoints: list[Endpoint] = []
        self.about: list[dict[str, Any]] = []  # what each process said of itself when it started

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(self._endpoints)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts what does not run. Raises UserError with a process's own line when it does not come up."""
        if self._processes and self.dead() is None:
            return
        self.stop()
        token = secrets.token_hex(16)
        environment = {**os.environ, TOKEN: token}
        try:
            for command in self._commands:
                self._processes.append(
                    subprocess.Popen(
                        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
                    )
                )
            for process in self._processes:
                about = _hear(process)
                self.about.append(about)
                self._endpoints.append(Endpoint(about["host"], about["port"], about["partitions"], token))
        except BaseException:
            self.stop()
            raise

    def dead(self) -> str | None:
        """One line on the first process that has ended, if any has."""
        for number, process in enumerate(self._processes):
            if (code := process.poll()) is not None:
                return f"driver process {number} (pid {process.pid}) ended with {code}: what it measured is lost"
        return None

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def stop(self) -> None:
        """Ends all of them; twice does no harm."""
        processes, self._processes = self._processes, []
        self._endpoints, self.about = [], []
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.communicate(timeout=END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def _command(
    stream: Path, replay: Replay, number: int, columns: dict[str, str], line: bool, salted: Sequence[str]
) -> list[str]:
    command = [sys.executable, "-m", "streamgauge.driver", str(stream), "--until-stdin-closes"]
    command += ["--share", f"{number}/{replay.processes}", "--partitions", str(replay.partitions)]
    command += ["--mode", replay.mode, "--profile", replay.profile, "--densify", str(replay.densify)]
    command += ["--queue-seconds", str(replay.queue_seconds), "--columns", ",".join(columns)]
    command += ["--max-memory-mb", str(max(1, replay.max_memory_mb // replay.processes))]
    command += ["--cpus", ",".join(map(str, replay.cpus))] if replay.cpus else []
    command += ["--line"] if line else []
    return command + [part for name in salted for part in ("--salt", name)]


def _hear(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The JSON line of a process that came up."""
    assert process.stdout is not None
    assert process.stderr is not None
    deadline = time.monotonic() + START_SECONDS
    ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
    line = process.stdout.readline() if ready else b""
    if not line:
        process.kill()
        said = process.stderr.read().decode(errors="replace").strip().splitlines()
        reason = said[-1].removeprefix("streamgauge driver: ") if said else f"no word within {START_SECONDS:g} s"
        raise UserError(f"the driver process did not start: {reason}")
    about: dict[str, Any] = json.loads(line)
    return about
