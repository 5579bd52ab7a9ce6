"""A local Kafka broker, a single KRaft node in a process session of its own, from the jars of `make kafka`."""

from __future__ import annotations

import base64
import socket
import uuid
from pathlib import Path

from streamgauge.app.services.java_server import START_SECONDS, JavaServer, jars
from streamgauge.base.errors import UserError
from streamgauge.bench.driver.ports import free_port

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


class Broker(JavaServer):
    """A broker that is ready when this is made. Raises UserError if it does not come up.

    port: 0 takes a free one. settings: further lines of server.properties, with the places {port} and {controller}.
    """

    title, name = "Kafka's broker", "broker"
    memory = "512m"

    def __init__(self, work: Path, port: int = 0, settings: dict[str, str] | None = None) -> None:
        super().__init__(work)
        self._classes = ("-Dorg.apache.logging.log4j.level=WARN", "-cp", f"{jars('broker')}/*")
        self.port = free_port(port)
        self._file = self._work / "server.properties"
        more = "\n".join(f"{key}={value}" for key, value in (settings or {}).items())
        places = {"port": self.port, "controller": free_port(), "data": self._work / "data"}
        self._file.write_text((_PROPERTIES + more).format(**places))
        try:
            self._format()
            self.start()
        except BaseException:
            self.stop()
            raise

    @property
    def bootstrap(self) -> str:
        """Address, as clients call it."""
        return self.address

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def arguments(self) -> list[str]:
        return [*self._classes, "kafka.Kafka", str(self._file)]

    def answers(self) -> bool:
        """True once it answers a request for its metadata, not only the connection."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                pass
            # a client that finds no broker logs to standard error
            client = AdminClient({"bootstrap.servers": self.address, "log_level": 0, "error_cb": lambda _: None})
            return bool(client.list_topics(timeout=5).brokers)
        except (OSError, KafkaException):
            return False

    def _format(self) -> None:
        """Writes the metadata of a new cluster."""
        # one that begins with a dash would be taken for an option
        identity = base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        tool = ["kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", identity, "-c", str(self._file)]
        self._leader = self.run(*self._classes, *tool)
        if code := self._leader.wait(START_SECONDS):
            raise UserError(f"Kafka's storage cannot be made ({code}): {self.last_line()}")
