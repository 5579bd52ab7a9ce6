"""A local server in Java, from the jars of `make kafka`, in a process session of its own."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from streamgauge.base.environment import java_command
from streamgauge.base.errors import UserError
from streamgauge.base.places import as_user_error
from streamgauge.base.processes import Leader, postponed, stop
from streamgauge.base.shipped import ASIDE, tools

HOME = tools() / "kafka"  # as `make kafka` makes it
START_SECONDS = 60.0
LOOK_SECONDS = 0.1


def jars(folder: str) -> Path:
    """The folder of jars that `make kafka` made: broker, registry, spark or flink. Raises UserError without it."""
    jars = HOME / folder
    if not (HOME / ".ready").exists() or not jars.is_dir():
        raise UserError(f"found no Kafka in {HOME}; `make kafka` downloads one{ASIDE}")
    return jars


class JavaServer(ABC):
    """A server that is ready once `start` has returned. Raises UserError if it does not come up."""

    #: what messages call it, and the name of its log
    title: ClassVar[str]
    name: ClassVar[str]
    #: enough for a trial; a bigger heap would take memory from the job beside it
    memory: ClassVar[str]

    def __init__(self, work: Path) -> None:
        java = java_command()
        if java is None or not Path(java).exists():
            where = f"JAVA_HOME names {java}" if java else "no java on PATH"
            raise UserError(f"Java: found none ({where}); {self.title} needs Java, 17 or newer")
        self._work, self._java = work.absolute(), java
        try:
            self._work.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise as_user_error(problem, self._work) from None
        self._leader: Leader | None = None

    @property
    @abstractmethod
    def address(self) -> str:
        """Address for clients."""

    @property
    def log(self) -> Path:
        """File that takes all that it prints."""
        return self._work / f"{self.name}.log"

    @abstractmethod
    def arguments(self) -> list[str]:
        """Arguments of Java that start it."""

    @abstractmethod
    def answers(self) -> bool:
        """True once it answers a request."""

    @property
    def pid(self) -> int | None:
        return self._leader.pid if self._leader else None

    def start(self) -> None:
        """Starts the process, also after `stop` or its death. Raises UserError."""
        with postponed():
            leader = self._leader = self.run(*self.arguments())
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if leader.poll() is not None:
                raise UserError(f"{self.title} ended with {leader.returncode}: {self.last_line()}")
            if time.monotonic() > deadline:
                raise UserError(f"{self.title} did not answer within {START_SECONDS:.0f} s; its log is {self.log}")
            time.sleep(LOOK_SECONDS)

    def alive(self) -> bool:
        return self._leader is not None and self._leader.poll() is None

    def kill(self) -> None:
        """Ends it as a crash would; `start` brings it back."""
        leader, self._leader = self._leader, None
        if leader is not None:
            leader.kill()
            leader.wait()

    def last_line(self) -> str:
        """The last line of its log that begins at the margin."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        said = [line for line in lines if line.strip() and line[0] not in " \t"]
        return said[-1][:300] if said else "it said nothing"

    def stop(self) -> None:
        """Ends it and all that it has started; safe to call twice."""
        leader, self._leader = self._leader, None
        if leader is not None:
            stop(leader)

    def run(self, *arguments: str) -> Leader:
        options = [f"-Xmx{self.memory}", "-XX:+UseSerialGC"]
        return Leader([self._java, *options, *arguments], {**os.environ, "KAFKA_OPTS": ""}, self.log)
