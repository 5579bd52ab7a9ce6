"""Runs the steps of docker/Dockerfile and docker/compose.yaml in plain directories, without a Docker engine.

    .venv/bin/python -m tests.e2e.image_steps

Each stage becomes a directory that lies at its image's path in a mount namespace of this process (needs root, and a
Python that others may be given). Steps of a base image or of the system's packages are named and left out.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from tests.conftest import ROOT

DOCKER = ROOT / "docker"
INSIDE = "STREAMGAUGE_IMAGE_STEPS"
HOME, PYTHON = Path("/opt/streamgauge"), Path("/opt/python")
BOUND = (HOME, PYTHON, Path("/artifacts"), Path("/opt/airflow"), Path("/run/secrets"))
USER = ["setpriv", "--reuid=10001", "--regid=10001", "--clear-groups", "--no-new-privs"]
#: over the cluster of the compose file, whose secret nobody without it knows
COUNT = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("spark://spark:7077").config("spark.executor.memory", "512m").getOrCreate()
rows = spark.range(1000, numPartitions=4).mapInArrow(lambda batches: batches, "id long")
print("rows over the cluster:", rows.count())
spark.stop()
"""


@dataclass
class Stage:
    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)


def read(text: str) -> dict[str, Stage]:
    """The stages of a Dockerfile by name."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    found: dict[str, Stage] = {}
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        verb, _, rest = line.partition(" ")
        if verb == "FROM":
            base, name = rest.split(" AS ")
            stage = found[name] = Stage(base)
        elif line.strip() and verb != "ARG":
            stage.steps.append((verb, rest))
    return found


class Images:
    """Directories in place of images."""

    def __init__(self, place: Path, table: Table) -> None:
        self.place, self.table = place, table
        self.stages = read((DOCKER / "Dockerfile").read_text())
        self.context = place / "context"
        self.bin = place / "bin"
        self._made: dict[str, tuple[Path, dict[str, str]]] = {}
        self.bin.mkdir()
        (self.bin / "uv").symlink_to(Path(sys.executable).with_name("uv"))
        _context(self.context)

    def told(self, where: str, what: str, outcome: str, seconds: float | None = None) -> None:
        self.table.add_row(where, what, outcome, "" if seconds is None else f"{seconds:.0f}")
        print(f"{where}: {what}: {outcome}", flush=True)

    def make(self, name: str) -> tuple[Path, dict[str, str]]:
        """The directory /opt/streamgauge of a stage, and its environment."""
        if name in self._made:
            return self._made[name]
        stage, home = self.stages[name], self.place / name
        variables = {"PATH": f"{self.bin}:{PYTHON}/bin:/usr/bin:/bin", "HOME": "/tmp"}
        variables["LD_LIBRARY_PATH"] = f"{PYTHON}/lib"  # where it was built nobody else may look
        if stage.base in self.stages:
            before, variables = self.make(stage.base)
            subprocess.run(["cp", "-a", before, home], check=True)
            variables = dict(variables)
        else:
            home.mkdir()
            fetching = re.compile(r"(UV_|PIP_|SSL_).*|.*_proxy", re.IGNORECASE)  # as this host fetches packages
            variables |= {key: value for key, value in os.environ.items() if fetching.fullmatch(key)}
        for verb, rest in stage.steps:
            self._step(name, home, variables, verb, rest)
        self._made[name] = home, variables
        return self._made[name]

    def _step(self, name: str, home: Path, variables: dict[str, str], verb: str, rest: str) -> None:
        if verb == "ENV":
            for word in shlex.split(rest):
                key, _, value = word.partition("=")
                variables[key] = value.replace("$PATH", variables["PATH"])
        elif verb == "COPY":
            *sources, target = rest.split()
            if sources[0].startswith("--from="):
                other, _ = self.make(sources[0].removeprefix("--from="))
                subprocess.run(["cp", "-a", f"{other}/.", home], check=True)
            elif target.startswith("/"):
                shutil.copy(self.context / sources[0], self.bin / Path(target).name)
            else:
                for source in sources:  # of a directory its content
                    here = self.context / source
                    into = home / target if here.is_dir() else home / target / here.name
                    into.parent.mkdir(parents=True, exist_ok=True)
                    subprocess.run(["cp", "-a", f"{here}/." if here.is_dir() else here, into], check=True)
        elif verb == "RUN" and rest.startswith(("uv ", "scripts/")):
            begin = time.monotonic()
            with bound(home, HOME):
                subprocess.run(rest, shell=True, cwd=HOME, env=variables, check=True)
            self.told(name, f"RUN {rest}", "done", time.monotonic() - begin)
        elif verb == "RUN":
            self.told(name, f"RUN {rest[:70]}…", "left out")

    def run(self, name: str, command: str, background: str | None = None, **more: str) -> subprocess.Popen[bytes]:
        """Runs as user 10001, in a namespace of its own where the image's directory is /opt/streamgauge."""
        home, variables = self.make(name)
        words = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
        script = f'mount --bind "{home}" {HOME} && cd /tmp && exec {shlex.join(USER)} {command}'
        log = open(self.place / f"{background}.log", "ab") if background else None  # noqa: SIM115 # its process has it
        return subprocess.Popen(
            [*words, script], env=variables | more, stdout=log, stderr=log, start_new_session=True
        )  # fmt: skip

    def passes(self, name: str, command: str, **more: str) -> None:
        begin = time.monotonic()
        code = self.run(name, command, **more).wait(timeout=300)
        short = command if len(command) < 80 else f"{command[:79]}…"
        self.told(f"image {name}", short, "ok" if code == 0 else f"exit code {code}", time.monotonic() - begin)
        assert code == 0, f"{name}: {command}: exit code {code}"


def _context(place: Path) -> None:
    """Committed files that .dockerignore lets through."""
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    place.mkdir()
    packed = subprocess.run(
        ["git", "archive", "HEAD", *(f":(glob){k}" if "*" in k else k for k in kept)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    subprocess.run(["tar", "-x", "-C", place], input=packed.stdout, check=True)


@contextmanager
def bound(source: Path, target: Path) -> Iterator[None]:
    subprocess.run(["mount", "--bind", source, target], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", target], check=True)


def healthy(images: Images, name: str, check: list[Any]) -> None:
    """The service's own health check, until it says yes."""
    home, variables = images.make(name)
    deadline = time.monotonic() + 90
    with bound(home, HOME):
        while subprocess.run([str(word) for word in check[1:]], env=variables, capture_output=True).returncode:
            assert time.monotonic() < deadline, f"{name}: not healthy: {check}"
            time.sleep(1)


def services(images: Images, compose: dict[str, Any]) -> None:
    """Generator, Spark's master, a worker and the history server, by the compose file's commands."""
    started = []
    try:
        for name in ("generator-1", "spark-master", "spark-worker-1", "spark-history"):
            service = compose["services"][name]
            target = service["build"]["target"]
            command = shlex.join(str(word) for word in service["command"])
            entry = "with-secrets streamgauge driver" if target == "generator" else "with-secrets"
            more = {key: _default(str(value)) for key, value in service.get("environment", {}).items()}
            begin = time.monotonic()
            started.append(images.run(target, f"{entry} {command}", background=name, **more))
            healthy(images, target, service["healthcheck"]["test"])
            images.told(name, command, "healthy", time.monotonic() - begin)
        images.passes("spark", f"with-secrets python -c {shlex.quote(COUNT)}")
        assert list(Path("/artifacts/spark-events").iterdir()), "no event log"
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _default(value: str) -> str:
    """${NAME:-value} of a compose file."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)


def steps(place: Path, table: Table) -> None:
    images = Images(place, table)
    compose = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    for name in ("generator", "spark", "airflow"):
        images.make(name)
    images.passes("generator", "with-secrets streamgauge driver --help >/dev/null")
    images.passes("generator", "sh -c '! python -c \"import pyspark\" 2>/dev/null'")
    images.passes("airflow", "with-secrets airflow version")
    images.passes("airflow", "with-secrets streamgauge check /opt/streamgauge/configs/flights.yaml")
    services(images, compose)


def inside() -> int:
    """Prepares the namespace: its own places, secrets and names of hosts."""
    table = Table("where", "step", "outcome", "s")
    with tempfile.TemporaryDirectory(prefix="streamgauge-images-") as scratch:
        place = Path(scratch)
        place.chmod(0o755)
        subprocess.run([DOCKER / "make-secrets.sh", place / "secrets"], check=True, capture_output=True)
        (place / "secrets").chmod(0o755)  # the engine mounts files of their own
        for name in ("volumes/artifacts/spark-events", "volumes/airflow"):
            (place / name).mkdir(parents=True)
        subprocess.run(["chown", "-R", "10001:10001", place / "volumes"], check=True)
        (place / "hosts").write_text(f"127.0.0.1 localhost spark generator-1 generator-2 {socket.gethostname()}\n")
        user = "streamgauge:x:10001:10001::/tmp:/bin/sh\n"  # as the image's useradd makes it; Spark asks who it is
        (place / "passwd").write_text(Path("/etc/passwd").read_text() + user)
        for source, target in (
            (Path(sys.base_prefix), PYTHON), (place / "volumes/artifacts", Path("/artifacts")),
            (place / "volumes/airflow", Path("/opt/airflow")), (place / "secrets", Path("/run/secrets")),
            (place / "hosts", Path("/etc/hosts")), (place / "passwd", Path("/etc/passwd")),
        ):  # fmt: skip
            subprocess.run(["mount", "--bind", source, target], check=True)
        try:
            steps(place, table)
        finally:
            for log in sorted(place.glob("*.log")):
                print(f"-- {log.stem}\n{log.read_text()[-600:]}")
        Console(width=160).print(table)
    return 0


def main() -> int:
    if os.environ.get(INSIDE):
        return inside()
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        print("not here: needs root and unshare")
        return 1
    made = [place for place in BOUND if not place.exists()]
    for mount_point in made:
        mount_point.mkdir()
    try:
        command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-m", "tests.e2e.image_steps"]
        return subprocess.run(command, env=os.environ | {INSIDE: "1"}, cwd=ROOT).returncode
    finally:
        for mount_point in made:
            mount_point.rmdir()


if __name__ == "__main__":
    sys.exit(main())
