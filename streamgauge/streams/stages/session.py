"""Makes Spark sessions for the batch stages."""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import socket
import sys
import tempfile
import zipfile
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING

from streamgauge.base.errors import UserError
from streamgauge.base.places import ENVIRONMENT
from streamgauge.base.plugins import Parts
from streamgauge.base.shipped import PACKAGE
from streamgauge.descriptions.source import FORMATS
from streamgauge.streams.stages.private_conf import REDACTED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: short batch stages spend their time starting: the first compiler and the serial collector are quickest. A suite of
#: streaming queries has more code than this compiler keeps by default, 48 MB, and starts thousands of processes, as
#: Hadoop sets each file's mode by chmod: with VFORK they take a third of the CPU time
BATCH_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m -XX:+UseSerialGC -Xshare:auto "
    "-Djdk.lang.Process.launchMechanism=VFORK"
)
#: a class-data archive of Spark's classes, which the JVM maps; there if scripts/class-archive.sh has made it
_CLASSES = Path(sys.prefix, "spark.jsa")
#: metadata of the packages that register queries, in the library's zip
_INFO = "streamgauge_parts-0.dist-info"
#: says what a JVM of ours logs, as a URI
LOG4J = Path(__file__).resolve().with_name("log4j2.properties").as_uri()
BATCH_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.worker.reuse": "true",
    "spark.task.maxFailures": "4",
    **REDACTED,
}
#: in Spark's own configuration: the address that a person's browser has for the history server
HISTORY_SERVER = "spark.streamgauge.historyServer"
#: largest number of local threads: Spark starts all of them at once, and hangs with more
_MOST_THREADS = 1024
_YARN_CONF = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_MASTER = re.compile(r"local(\[(\*|[1-9]\d*)(,\d+)?\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn")


def batch_session(name: str, master: str | None = None, conf: dict[str, str] | None = None) -> SparkSession:
    """Makes a session for a batch stage, with `session_conf`. Raises UserError without Java or master."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # read when the JVM starts, unless spark-submit has started it already
    logging.getLogger().addFilter(_is_worth_telling)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # what it logs is raised as well
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f'--driver-java-options "{driver_options()}" pyspark-shell')
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(f"streamgauge {name}")
    for key, value in session_conf(_submitted_conf(), master, conf or {}).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as problem:
        raise UserError(f"Spark did not start: {_first_line(problem)}; check Java 17 and the master's URL") from problem
    session.sparkContext.setLogLevel("ERROR")
    session.sparkContext.environment |= {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    if not session.sparkContext.master.startswith("local"):
        library = library_zip()
        atexit.register(shutil.rmtree, library.parent, ignore_errors=True)
        session.sparkContext.addPyFile(str(library))
    return session


def application(session: SparkSession) -> dict[str, str]:
    """Describes a session's application: `id`; `events`, the folder of its event log; `history`, its page.

    `events` is there if a log is kept, `history` if the server's address is known too.
    """
    conf, names = session.sparkContext.getConf(), {"id": session.sparkContext.applicationId}
    if conf.get("spark.eventLog.enabled", "false") == "true":
        names["events"] = str(conf.get("spark.eventLog.dir", "file:/tmp/spark-events"))
        if server := conf.get(HISTORY_SERVER):
            names["history"] = f"{server.rstrip('/')}/history/{names['id']}/"
    return names


def quick_jvm() -> str:
    """BATCH_JVM, with the archive if it is there; the JVM silently ignores one of another Spark or Java."""
    if not _CLASSES.exists():
        return BATCH_JVM
    return f"{BATCH_JVM} -XX:SharedArchiveFile='{_CLASSES}' -Xlog:cds=off -Xlog:cds+dynamic=off"


def driver_options() -> str:
    """Options for the JVM of a Spark driver on this host."""
    return f"{quick_jvm()} -Dlog4j2.configurationFile={LOG4J}"


def end(session: SparkSession) -> None:
    """Stops a session, also one whose JVM has died."""
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):
        session.stop()


def silence(session: SparkSession) -> None:
    """Silences Spark's messages about jobs that end because the user stopped the command."""
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):
        session.sparkContext.setLogLevel("OFF")


def _is_worth_telling(record: logging.LogRecord) -> bool:
    """False for the stack trace that Py4J logs when a signal interrupts it."""
    return "KeyboardInterrupt while sending command" not in str(record.msg)


def session_conf(given: dict[str, str], master: str | None, conf: dict[str, str]) -> dict[str, str]:
    """Settings beside those given to spark-submit, which win but for `master`. Raises UserError for a bad master."""
    master = master or given.get("spark.master", "local[*]")
    check_master(master)
    wanted = {**BATCH_CONF, **driver_address(master), **conf}
    if master.startswith("local"):  # executors of a cluster have no module of ours when their daemon starts
        wanted["spark.python.daemon.module"] = "streamgauge.streams.stages.daemon"
    return {key: value for key, value in wanted.items() if key not in given} | {"spark.master": master}


def check_master(master: str) -> None:
    """Raises UserError for an invalid master, or a standalone one that does not answer.

    It does so at once; Spark itself would take a minute.
    """
    if not _MASTER.fullmatch(master):
        raise UserError(f"master: found {master!r}, allowed: local[2], local[*], spark://host:7077, k8s://…, yarn")
    threads = re.match(r"local\[(\d+)", master)
    if threads and int(threads[1]) > _MOST_THREADS:
        raise UserError(f"master: found {master!r}, allowed: local with at most {_MOST_THREADS:,} threads, or local[*]")
    if master == "yarn" and not any(os.environ.get(name) for name in _YARN_CONF):
        raise UserError(
            f"master: found yarn, but neither {' nor '.join(_YARN_CONF)} is set; name the folder of its "
            "core-site.xml and yarn-site.xml"
        )
    if not master.startswith("spark://"):
        return
    try:
        _master(master).close()
    except (OSError, ValueError) as problem:
        raise UserError(f"{master}: no Spark master answers there ({problem}); start it or correct the URL") from None


def _master(url: str) -> socket.socket:
    """Connects to the first of a standalone URL's masters that answers. Raises what the last one raised."""
    *standby, last = url.removeprefix("spark://").split(",")
    for one in standby:
        with suppress(OSError, ValueError):
            return _connected(one)
    return _connected(last)


def _connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=5)


def driver_address(master: str) -> dict[str, str]:
    """Settings of the address at which executors call the driver back: this host's, as a standalone master sees it."""
    if master.startswith("local"):
        address = "127.0.0.1"
    elif master.startswith("spark://"):
        with _master(master) as probe:
            address = str(probe.getsockname()[0])
    else:
        return {}  # Spark's own choice
    return {"spark.driver.host": address, "spark.driver.bindAddress": address}


def library_zip() -> Path:
    """Writes this library as a zip, for executors on other hosts, into a new temporary folder; returns its path.

    It also holds the packages that register queries and formats of sources, to which executors have no other path.
    Modules that Python has compiled are in it in that form too, else each worker would compile them when it starts.
    Python takes the source where it is newer, or where the executor has another Python.
    """
    registered = (Parts("workloads", {}), FORMATS)
    others = {package: place for parts in registered for package, place in parts.packages().items()}
    target = Path(tempfile.mkdtemp(prefix="streamgauge-")) / "streamgauge.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        if others:
            archive.writestr(f"{_INFO}/METADATA", "Metadata-Version: 2.1\nName: streamgauge-parts\nVersion: 0\n")
            archive.writestr(f"{_INFO}/entry_points.txt", "".join(parts.metadata() for parts in registered))
        packages = {PACKAGE: Path(), **others}
        for namespace in sorted({folder for place in packages.values() for folder in (place, *place.parents)}):
            if namespace.name:  # Python sees no namespace in a zip without an entry for its folder
                archive.mkdir(str(namespace))
        for package, place in packages.items():
            for file in (package, *sorted(package.rglob("*"))):
                if "__pycache__" not in file.parts:
                    name = place / file.relative_to(package.parent)
                    archive.write(file, name)
                    if file.suffix == ".py" and (compiled := Path(cache_from_source(str(file)))).exists():
                        archive.write(compiled, name.with_suffix(".pyc"))
    return target


def _submitted_conf() -> dict[str, str]:
    """Settings that spark-submit was given, which must not be overridden."""
    from pyspark import SparkConf, SparkContext

    if os.environ.get("PYSPARK_GATEWAY_PORT") is None and SparkContext._gateway is None:
        return {}
    SparkContext._ensure_initialized()  # else SparkConf sees no JVM, hence nothing of --master and --conf
    return dict(SparkConf().getAll())


def _first_line(problem: BaseException) -> str:
    """First line of an error's text, without py4j's own preamble."""
    lines = [line for line in str(problem).strip().splitlines() if not line.startswith("An error occurred while")]
    return lines[0].removeprefix(": ") if lines else type(problem).__name__
