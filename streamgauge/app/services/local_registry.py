"""A local schema registry, Apicurio, which speaks Confluent's interface and keeps its schemas in memory."""

from __future__ import annotations

from pathlib import Path

from streamgauge.app.services.java_server import JavaServer, jars
from streamgauge.base.errors import UserError
from streamgauge.base.shipped import ASIDE
from streamgauge.bench.driver.ports import free_port
from streamgauge.descriptions.schema_registry import SchemaRegistry
from streamgauge.streams.kafka.registry import Registry


class LocalRegistry(JavaServer):
    """A registry that is ready when this is made. Raises UserError if it does not come up. port: 0 takes a free one."""

    title, name = "the schema registry", "registry"
    memory = "256m"

    def __init__(self, work: Path, port: int = 0) -> None:
        super().__init__(work)
        self._jars = jars("registry")
        self.port = free_port(port)
        try:
            self.start()
        except BaseException:
            self.stop()
            raise

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def arguments(self) -> list[str]:
        program = next(self._jars.glob("*-runner.jar"), None)
        if program is None:
            raise UserError(f"found no registry in {self._jars}; `make kafka` downloads one{ASIDE}")
        quick = "-XX:TieredStopAtLevel=1"  # it starts in half of the time, and is asked little
        return [quick, f"-Dquarkus.http.port={self.port}", "-Dquarkus.http.host=127.0.0.1", "-jar", str(program)]

    def answers(self) -> bool:
        try:
            Registry(SchemaRegistry(address=self.address)).schema(0)
        except UserError:
            return False
        return True
