"""Starts, watches and ends driver processes on this host, once for many trials, and connects to remote ones."""

from __future__ import annotations

import json
import os
import secrets
import select
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self, Unpack

from streamgauge.base.errors import UserError
from streamgauge.base.processes import Child
from streamgauge.base.units import Tick
from streamgauge.bench.driver.client import Connection, RefusedError, WireError
from streamgauge.bench.driver.process import TOKEN, Settings
from streamgauge.bench.driver.serving import Sent, Serving
from streamgauge.bench.driver.system import Endpoint
from streamgauge.catalog.artifacts import Artifact
from streamgauge.config import Replay

DriversMaker = Callable[..., AbstractContextManager["Drivers"]]
START_SECONDS = 120.0
END_SECONDS = 10.0


def drivers(stream: Artifact, replay: Replay, *, others: Sequence[Artifact] = (), **sent: Unpack[Sent]) -> Drivers:
    """Returns the processes at replay.remote, or else a `Fleet` on this host. Raises UserError.

    others: streams that take turns with the first one, in processes on this host.
    """
    if replay.remote:
        if others:
            raise UserError(
                "replay.remote: found drivers by hand, which serve one stream; allowed: none, or one stream"
            )
        return RemoteDrivers.at(stream, replay, **sent)
    return Fleet(stream.path, replay, others=[other.path for other in others], **sent)


class KeptDrivers:
    """Driver processes that measurements share one after the other: `with KeptDrivers() as kept: kept(stream, …)`.

    Each stream and choice of columns has processes of its own, which end with the block.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._kept: dict[str, Drivers] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.clear()
        self._stack.close()

    def __call__(
        self, stream: Artifact, replay: Replay, *, others: Sequence[Artifact] = (), **sent: Unpack[Sent]
    ) -> AbstractContextManager[Drivers]:
        """Returns a context that yields the processes and does not end them; its arguments are those of `drivers`."""
        key = repr((stream.path, replay, others, sent))
        if key not in self._kept:
            made: AbstractContextManager[Drivers] = drivers(stream, replay, others=others, **sent)
            self._kept[key] = self._stack.enter_context(made)
        self._kept[key].start()
        return nullcontext(self._kept[key])


@dataclass(frozen=True)
class RemoteDrivers:
    """Processes that somebody started by hand, on any host: `streamgauge driver … --share i/n`, or with --store."""

    endpoints: tuple[Endpoint, ...]
    tick: Tick
    columns: dict[str, str]
    line: bool = False
    partition_by: str | None = None
    key: str = ""  # the stream's key in the store
    servings: tuple[Serving, ...] = ()  # what each must serve

    @classmethod
    def at(cls, stream: Artifact, replay: Replay, **sent: Unpack[Sent]) -> Self:
        """Connects to each process, tells agents what to serve, and checks what each serves.

        Raises UserError when one is unreachable or serves something else.
        """
        token = os.environ.get(replay.token_variable) if replay.token_variable else ""
        if token is None:
            raise UserError(
                f"replay.token_variable: the environment has no {replay.token_variable}; put the drivers' token there"
            )
        if replay.shares > replay.partitions:
            raise UserError(
                f"replay.partitions: found {replay.partitions}, allowed: at least {replay.shares}, as remote"
            )
        sha256 = str(stream.manifest.get("sha256", ""))
        endpoints, servings = [], []
        for number, address in enumerate(replay.remote):
            host, _, port = address.rpartition(":")
            serving = Serving.of(replay, sha256, (number, replay.shares), replay.shares, **sent)
            partitions = len(range(number, replay.partitions, replay.shares))
            endpoint = Endpoint(host, int(port), partitions, token, replay.cafile)
            try:
                _agree(endpoint, stream.key, serving)
            except WireError as problem:
                raise UserError(f"replay.remote: {problem}; is `streamgauge driver` running there?") from None
            endpoints.append(endpoint)
            servings.append(serving)
        line, partition_by = sent.get("line", False), sent.get("partition_by")
        return cls(tuple(endpoints), sent["tick"], sent["columns"], line, partition_by, stream.key, tuple(servings))

    def start(self) -> None:
        """Tells agents again what to serve, in case one was restarted. Whoever started an agent keeps it running."""
        for endpoint, serving in zip(self.endpoints, self.servings, strict=False):
            with suppress(WireError):  # an unreachable one makes the trial invalid, with its reason
                _agree(endpoint, self.key, serving)

    def dead(self) -> str | None:
        """Always None: of remote processes, only their connections are known."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def _agree(endpoint: Endpoint, key: str, serving: Serving) -> None:
    """Makes an agent serve the stream, and checks what the process serves.

    Raises WireError when it is unreachable, UserError when it serves something else.
    """
    with Connection(endpoint) as asked:
        if asked.agent:
            try:
                asked.serve(key, serving)
            except RefusedError as problem:
                raise UserError(f"replay.remote: {problem}") from None
        for difference in serving.differences(asked.serves or {}):
            raise UserError(
                f"replay.remote: {endpoint.address} serves something else than this benchmark needs: {difference}"
            )


class Fleet:
    """Driver processes on this host: `with Fleet(...) as fleet: run_trial(system, fleet, …)`.

    The processes end with the block, or with this process. stream: the directory of a finished stream artifact.
    others: directories of streams that take turns with it.
    """

    def __init__(self, stream: Path, replay: Replay, *, others: Sequence[Path] = (), **sent: Unpack[Sent]) -> None:
        self.tick, self.columns, self.line = sent["tick"], sent["columns"], sent.get("line", False)
        self.partition_by = sent.get("partition_by")
        if replay.processes > replay.partitions:
            raise UserError(
                f"replay.processes: found {replay.processes}, allowed: at most replay.partitions {replay.partitions}"
            )
        cpus = ",".join(map(str, replay.cpus)) if replay.cpus else None
        settings = Settings(stream=str(stream), others=tuple(map(str, others)), cpus=cpus, until_stdin_closes=True)
        self._tasks: list[str] = []
        for number in range(replay.processes):
            serving = Serving.of(replay, "", (number, replay.processes), replay.processes, **sent)
            self._tasks.append(settings.model_copy(update={"serving": serving}).model_dump_json())
        self._processes: list[Child] = []
        self._endpoints: list[Endpoint] = []

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(self._endpoints)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts all processes, unless all of them run. Raises UserError with the line of one that does not start."""
        if self._processes and self.dead() is None:
            return
        self.stop()
        token = secrets.token_hex(16)
        environment = {**os.environ, TOKEN: token}
        try:
            for task in self._tasks:
                self._processes.append(Child("streamgauge.bench.driver", task, environment=environment))
            for process in self._processes:
                self._endpoints.append(_hear(process, token))
        except BaseException:
            self.stop()
            raise

    def dead(self) -> str | None:
        """Names the first process that has ended, in one line; None if all run."""
        for number, process in enumerate(self._processes):
            if (code := process.poll()) is not None:
                return f"driver process {number} (pid {process.pid}) ended with {code}: its measurements are lost"
        return None

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def stop(self) -> None:
        """Ends all processes. Safe to call twice."""
        processes, self._processes = self._processes, []
        self._endpoints = []
        for process in processes:
            process.terminate()
        for process in processes:
            process.end(END_SECONDS)


#: driver processes, on this host or elsewhere
Drivers = RemoteDrivers | Fleet


def _hear(process: Child, token: str) -> Endpoint:
    """Reads the line that a process prints once it listens. Raises UserError if it does not start."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    line = process.stdout.readline() if ready else ""
    if not line:
        process.kill()
        reason = process.last_error(f"no answer within {START_SECONDS:g} s")
        raise UserError(f"the driver process did not start: {reason}")
    about = json.loads(line)
    return Endpoint(about["host"], about["port"], about["partitions"], token)
