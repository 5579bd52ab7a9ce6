"""A local Kafka broker, a single KRaft node in a process session of its own, from the jars of `make kafka`."""

from __future__ import annotations

import base64
import os
import socket
import time
import uuid
from pathlib import Path

from streamgauge.base.environment import java_command
from streamgauge.base.errors import UserError
from streamgauge.base.processes import Leader, postponed, stop
from streamgauge.base.shipped import tools
from streamgauge.bench.driver.ports import free_port

HOME = tools() / "kafka"  # as `make kafka` makes it
START_SECONDS = 60.0
LOOK_SECONDS = 0.1
#: enough for a trial's rows; a bigger heap would take memory from the job beside it
MEMORY = "512m"

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.segment.delete.delay.ms=1000
"""


def jars(folder: str) -> Path:
    """The folder of jars that `make kafka` made: broker, spark or flink. Raises UserError if there is none."""
    jars = HOME / folder
    if not (HOME / ".ready").exists() or not jars.is_dir():
        raise UserError(f"found no Kafka in {HOME}; `make kafka` downloads one")
    return jars


class Broker:
    """A broker that is ready when this is made. Raises UserError if it does not come up.

    port: 0 takes a free one. settings: further lines of server.properties, with the places {port} and {controller}.
    """

    def __init__(self, work: Path, port: int = 0, settings: dict[str, str] | None = None) -> None:
        java = java_command()
        if java is None or not Path(java).exists():
            where = f"JAVA_HOME names {java}" if java else "no java on PATH"
            raise UserError(f"Java: found none ({where}); a Kafka broker needs Java, 17 or newer")
        self._work, self._java, self._jars = work.absolute(), java, jars("broker")
        self.log = self._work / "broker.log"
        self._work.mkdir(parents=True, exist_ok=True)
        self.port = free_port(port)
        self._file = self._work / "server.properties"
        more = "\n".join(f"{key}={value}" for key, value in (settings or {}).items())
        places = {"port": self.port, "controller": free_port(), "data": self._work / "data"}
        self._file.write_text((_PROPERTIES + more).format(**places))
        self._leader: Leader | None = None
        try:
            self._format()
            self.start()
        except BaseException:
            self.stop()
            raise

    @property
    def bootstrap(self) -> str:
        """Address for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        return self._leader.pid if self._leader else None

    def start(self) -> None:
        """Starts the process, also after `stop` or its death: topics are on the disk. Raises UserError."""
        with postponed():
            self._leader = self._run("kafka.Kafka", str(self._file))
        self._wait(self._leader)

    def _wait(self, leader: Leader) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(self.port):
            if leader.poll() is not None:
                raise UserError(f"Kafka's broker ended with {leader.returncode}: {_last(self.log)}")
            if time.monotonic() > deadline:
                raise UserError(f"Kafka's broker did not answer within {START_SECONDS:.0f} s; its log is {self.log}")
            time.sleep(LOOK_SECONDS)

    def alive(self) -> bool:
        return self._leader is not None and self._leader.poll() is None

    def kill(self) -> None:
        """Ends the broker as a crash would; `start` brings it back."""
        leader, self._leader = self._leader, None
        if leader is not None:
            leader.kill()
            leader.wait()

    def last_line(self) -> str:
        """The last line of its log that begins at the margin."""
        return _last(self.log)

    def stop(self) -> None:
        """Ends the broker and all that it has started; safe to call twice."""
        leader, self._leader = self._leader, None
        if leader is not None:
            stop(leader)

    def _format(self) -> None:
        """Writes the metadata of a new cluster."""
        # one that begins with a dash would be taken for an option
        identity = base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        self._leader = self._run(
            "kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", identity, "-c", str(self._file)
        )
        if code := self._leader.wait(START_SECONDS):
            raise UserError(f"Kafka's storage cannot be made ({code}): {_last(self.log)}")

    def _run(self, *command: str) -> Leader:
        options = [f"-Xmx{MEMORY}", "-XX:+UseSerialGC", "-Dorg.apache.logging.log4j.level=WARN"]
        return Leader(
            [self._java, *options, "-cp", f"{self._jars}/*", *command],
            {**os.environ, "KAFKA_OPTS": ""},
            self.log,
        )


def _answers(port: int) -> bool:
    """True once the broker answers a request for its metadata, not only the connection."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            pass
        # a client that finds no broker logs to standard error
        client = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0, "error_cb": lambda _: None})
        return bool(client.list_topics(timeout=5).brokers)
    except (OSError, KafkaException):
        return False


def _last(log: Path) -> str:
    lines = [
        line
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
        if line.strip() and line[0] not in " \t"
    ]
    return lines[-1][:300] if lines else "it said nothing"
