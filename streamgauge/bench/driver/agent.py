"""Loads a finished stream into a driver; and `Agent`, which serves whichever stream of a store the controller names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from streamgauge import config
from streamgauge.base.errors import UserError
from streamgauge.base.parquet import parquet_file
from streamgauge.base.schemas import COLUMN_TYPES, STREAM
from streamgauge.bench.driver import requests
from streamgauge.bench.driver.offer import Driver
from streamgauge.bench.driver.replay import DAY_PS, load_stream, memory_of_each
from streamgauge.bench.driver.server import Answer, Refused
from streamgauge.bench.driver.serving import Serving
from streamgauge.catalog.artifacts import Artifact, Store


def driver_of(
    stream: Artifact, serving: Serving, *, horizon_ps: int = DAY_PS, others: Sequence[Artifact] = ()
) -> Driver:
    """Loads a stream and returns a driver that serves it; others: streams that take turns with it.

    horizon_ps: how far after the last event the sentinel is, ps. Raises UserError.
    """
    share, partitions = _share(serving.share), serving.partitions
    if share[0] >= partitions:
        raise UserError(
            f"--share: found {serving.share}, allowed: i/n with i below {partitions}, the number of partitions"
        )
    names = None if serving.columns is None else list(serving.columns)
    loaded = []
    for one in (stream, *others):
        parts = [file for file in one.files() if file.suffix == ".parquet"]
        if not parts:
            raise UserError("the stream's manifest names no Parquet files; generate the stream with output parquet")
        loaded.append(
            load_stream(
                parts,
                one.manifest.get("tick", "ns"),
                _columns(parts, names),
                line=serving.line,
                densify=serving.densify,
                salted=serving.salted,
                partition_by=serving.partition_by,
                max_memory_mb=memory_of_each(serving.max_memory_mb, 1 + len(others)),
            )
        )
    first, sha256 = loaded[0], str(stream.manifest.get("sha256", ""))
    served = Serving.of(
        serving, sha256, share, tick=first.tick, columns=first.columns, line=first.line, salted=serving.salted,
        partition_by=first.partition_by,
    )  # fmt: skip
    return Driver(first, served, others=loaded[1:], share=share, horizon_ps=horizon_ps)


class Agent:
    """A handler of the wire (`server.Handler`) that loads the stream which the verb `serve` names.

    It serves one stream of its store at a time. Naming the stream that is already served costs nothing.
    """

    def __init__(self, store: Path, *, horizon_ps: int = DAY_PS) -> None:
        self._store, self._horizon_ps = Store(store), horizon_ps
        self._driver: Driver | None = None
        self._lock = threading.Lock()
        #: set by process.py: closes the connections of other attempts
        self.drop_others: Callable[[str], None] = lambda _name: None

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([]) if self._driver is None else self._driver.schema

    def hello(self) -> Answer:
        nothing = {"partitions": 0, "attempt": "", "serves": None}
        return {**(nothing if self._driver is None else self._driver.hello()), "agent": True}

    def read(self, request: requests.Read) -> list[pa.RecordBatch]:
        return self._current().read(request)

    def answer(self, request: requests.Request) -> Answer:
        return self._serve(request) if isinstance(request, requests.Serve) else self._current().answer(request)

    def refused(self, why: str) -> None:
        self._current().refused(why)

    def about(self) -> Answer:
        return {"store": str(self._store.root)}

    def _serve(self, request: requests.Serve) -> Answer:
        wanted = config.parse(Serving, request.serving, "serve")
        with self._lock:
            if self._driver is None or self._driver.serving != wanted:
                if self._driver is not None:
                    self._driver.end()
                self._driver = None  # frees its memory for the next one
                self._driver = self._made(request.key, wanted)
                self.drop_others("")
            return {"serves": self._driver.serving.to_json()}

    def _made(self, key: str, serving: Serving) -> Driver:
        stream = self._store.need("stream", key, "generate")
        driver = driver_of(stream, serving, horizon_ps=self._horizon_ps)
        driver.drop_others = lambda name: self.drop_others(name)
        return driver

    def _current(self) -> Driver:
        if self._driver is None:
            raise Refused("no stream is served here yet; the controller must send `serve` first")
        return self._driver


def _columns(files: Sequence[Path], names: Sequence[str] | None) -> dict[str, str]:
    """Maps declared columns to their types: those named, or all if None. Raises UserError for an unknown name."""
    with parquet_file(files[0]) as first:
        schema = first.schema_arrow
    kinds = {kind: name for name, kind in COLUMN_TYPES.items()}
    declared = {
        field.name: kinds[field.type]
        for field in schema
        if field.name not in {*STREAM.names, "arrival_time"} and field.type in kinds
    }
    for name in names or ():
        if name not in declared:
            raise UserError(f"--columns: found {name!r}, allowed: {', '.join(declared) or 'none'}")
    return declared if names is None else {name: declared[name] for name in names}


def _share(text: str) -> tuple[int, int]:
    first, slash, count = text.partition("/")
    if not slash or not first.isdigit() or not count.isdigit() or int(first) >= int(count):
        raise UserError(f"--share: found {text!r}, allowed: i/n with i below n, such as 0/2")
    return int(first), int(count)
