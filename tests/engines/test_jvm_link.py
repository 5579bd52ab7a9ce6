"""The link in the JVM counts as the Python one does: every row once, whatever fails, and the same fingerprints."""

from __future__ import annotations

import os
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from streamgauge.bench.engines.spark.application import LINKS
from streamgauge.bench.engines.spark.connections import options_of, salts_of
from streamgauge.bench.engines.spark.sink import MeasuringSink
from streamgauge.bench.engines.spark.source import Link
from streamgauge.bench.oracle.checksum import checksum
from tests.engines.hand import HandDriver, row, sentinel, table

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("jvm_link_is_made")]

#: a column of each type that a result may have, with nulls, both zeros, a NaN and letters of several bytes
TYPES = (
    "seq", "name", "amount", "event_ts", "cast(event_ts as date) as d", "amount > 3 as b", "cast(amount as int) as i",
    "cast(amount as short) as s", "cast(amount as byte) as t", "if(amount = 1, 'naïve 😀', name) as text",
    "case amount when 1 then double('NaN') when 2 then -0D when 3 then 0D when 4 then null else amount / 7D end as f",
    "cast(amount / 7 as float) as g", "cast(amount - 5 as decimal(20, 2)) as n", "cast(name as binary) as bytes",
    "cast(-123456789012345678901234567890.12 as decimal(38, 2)) as big", "cast(event_ts as timestamp_ntz) as local",
    "event_wall", "offered_wall", "sentinel",
)  # fmt: skip


@pytest.fixture
def driver() -> Iterator[HandDriver]:
    hand = HandDriver(partitions=2)
    yield hand
    hand.close()


def run(
    spark: Any, driver: HandDriver, place: Path, batch_rows: int = 10**6,
    change: Callable[[Any], Any] = lambda frame: frame, links: tuple[str, str] = ("jvm", "jvm"),
) -> Any:  # fmt: skip
    """Begins to read what is offered now, to its end, with a source and a sink of these links."""
    spark.dataSource.register(Link)
    spark.dataSource.register(MeasuringSink)
    options = options_of((driver.endpoint,), driver.attempt)
    source, sink = LINKS[links[0]][0], LINKS[links[1]][1]
    frame = change(spark.readStream.format(source).options(**options, batch_rows=batch_rows).load())
    writer = frame.writeStream.format(sink).options(**options, salts=salts_of(frame.columns))
    return writer.option("checkpointLocation", str(place / "check")).trigger(availableNow=True).start()


def reported(driver: HandDriver) -> tuple[int, int]:
    """Rows and checksum over all epochs."""
    bodies = driver.reports.values()
    return sum(body["rows"] for body in bodies), sum(body["checksum"] for body in bodies) % 2**64


def test_every_row_once_over_two_queues_in_mid_batch_offsets(spark: Any, driver: HandDriver, tmp_path: Path) -> None:
    driver.offer([row(n, n) for n in range(0, 50)], 0, chunk=7)
    driver.offer([row(n, n) for n in range(50, 80)] + [sentinel(1e6)], 1, chunk=11)
    assert run(spark, driver, tmp_path, batch_rows=20).awaitTermination(60)
    assert [driver.reports[n]["rows"] for n in sorted(driver.reports)] == [20, 20, 20, 10, 10]
    assert driver.said("planned") == [{"0": min(50, n), "1": min(31, n)} for n in (10, 20, 30, 40, 50)]
    assert driver.said("commit") == driver.said("planned")
    assert reported(driver) == (80, checksum(table([row(n, n) for n in range(80)])))


def test_every_type_has_the_fingerprint_of_the_python_sink(spark: Any, tmp_path: Path) -> None:
    reports = []
    for number, links in enumerate((("python", "python"), ("jvm", "jvm"), ("jvm", "python"), ("python", "jvm"))):
        driver = HandDriver()
        driver.offer([row(n, n * 40_000, name="k" * (n % 4), amount=n % 9) for n in range(100)])
        driver.offer([{**row(100, 1), "name": None, "amount": None}, sentinel(1e7)])
        place = tmp_path / str(number)
        query = run(spark, driver, place, change=lambda frame: frame.selectExpr(*TYPES), links=links)
        assert query.awaitTermination(60)
        (body,) = driver.reports.values()
        reports.append((reported(driver), body["event_latency"]["count"], body["negative"]))
        driver.close()
    assert reports[0][0][0] == 101
    assert reports == [reports[0]] * 4


def test_negative_latencies_are_counted_apart(spark: Any, driver: HandDriver, tmp_path: Path) -> None:
    driver.offer([{**row(n, n), "offered_wall": n if n % 3 else 2**62} for n in range(9)])
    assert run(spark, driver, tmp_path).awaitTermination(60)
    (body,) = driver.reports.values()
    assert (body["rows"], body["negative"]) == (9, 3)
    assert body["event_latency"]["count"] == body["processing_latency"]["count"] == 6
    first, last = body["emitted_wall_ns"]
    assert first <= body["emitted_mean_wall_ns"] <= last
    assert len(body["clock_offset_ns"]) == 2


def test_a_task_that_fails_midway_is_repeated_and_counted_once(spark: Any, driver: HandDriver, tmp_path: Path) -> None:
    driver.offer([row(n, n) for n in range(40)], 0, chunk=10)
    once = str(tmp_path / "failed")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            yield batch
            if number == 1 and not os.path.exists(once):
                open(once, "w").close()
                raise RuntimeError("injected: the sink has seen two batches")

    assert run(spark, driver, tmp_path, change=lambda f: f.mapInArrow(fail_once, f.schema)).awaitTermination(60)
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert os.path.exists(once)
    assert reported(driver) == (40, checksum(table([row(n, n) for n in range(40)])))
    assert [body["event_latency"]["count"] for body in driver.reports.values()] == [40]


def test_a_connection_cut_within_an_answer_is_taken_up_where_it_broke(
    spark: Any, driver: HandDriver, tmp_path: Path
) -> None:
    rows = [row(n, n) for n in range(60_000)]
    driver.offer(rows, 0, chunk=20_000)  # batches larger than any buffer
    driver.tear = 1
    assert run(spark, driver, tmp_path).awaitTermination(60)
    assert reported(driver) == (60_000, checksum(table(rows)))
    first, second = driver.said("read")
    assert first == (0, 0, 60_000)
    assert second in [(0, 20_000, 60_000), (0, 40_000, 60_000)]


def test_a_restart_from_the_checkpoint_reads_the_uncommitted_again_and_repeats_nothing(
    spark: Any, driver: HandDriver, tmp_path: Path
) -> None:
    driver.offer([row(n, n) for n in range(30)])
    failing = "if(seq = 15, raise_error('injected: every try of the second batch'), seq) as seq"
    others = [name for name in table([row(0, 0)]).column_names if name != "seq"]

    broken = run(spark, driver, tmp_path, 20, lambda frame: frame.selectExpr(failing, *others))
    with pytest.raises(Exception, match="injected"):
        broken.awaitTermination(60)
    assert sorted(driver.reports) == [0]
    assert reported(driver) == (10, checksum(table([row(n, n) for n in range(10)])))
    driver.offer([row(n, n) for n in range(30, 35)])
    assert run(spark, driver, tmp_path, 20).awaitTermination(60)
    assert [driver.reports[n]["rows"] for n in sorted(driver.reports)] == [10, 10, 10, 5]
    assert reported(driver) == (35, checksum(table([row(n, n) for n in range(35)])))


def test_the_connections_of_a_trial_are_closed_as_the_next_begins(spark: Any, tmp_path: Path) -> None:
    jvm = psutil.Process(spark._jvm.java.lang.ProcessHandle.current().pid())
    drivers = [HandDriver(attempt=f"t{number}") for number in range(2)]
    kept = []
    for driver in drivers:
        driver.offer([row(n, n) for n in range(30)])
        assert run(spark, driver, tmp_path / driver.attempt).awaitTermination(60)
        open_to = [there.raddr.port for there in jvm.net_connections("tcp") if there.raddr]
        kept.append([open_to.count(one.endpoint.port) > 0 for one in drivers])
    assert kept == [[True, False], [False, True]]
    for driver in drivers:
        driver.close()


def certificate(place: Path, address: str) -> tuple[Path, Path]:
    """PEM files of a certificate of this address, signed by itself, and of its key."""
    made, key = place / f"{address}.pem", place / f"{address}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={address}",
         "-addext", f"subjectAltName=IP:{address}", "-keyout", key, "-out", made],
        check=True, capture_output=True,
    )  # fmt: skip
    return made, key


@pytest.mark.parametrize(
    ("address", "error"), [("127.0.0.1", None), ("127.0.0.2", "No subject alternative names match")]
)
def test_tls_trusts_each_certificate_of_its_file_if_that_names_the_host(
    spark: Any, tmp_path: Path, address: str, error: str | None
) -> None:
    (of_other, _), (own, key) = certificate(tmp_path, "127.0.0.3"), certificate(tmp_path, address)
    trusted = tmp_path / "trusted.pem"
    trusted.write_text("\n".join(file.read_text() for file in (key, of_other, own)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own, key)
    driver = HandDriver(context=context, cafile=str(trusted))
    driver.offer([row(n, n) for n in range(30)])
    with pytest.raises(Exception, match=error) if error else nullcontext():
        assert run(spark, driver, tmp_path).awaitTermination(60)
    assert sum(body["rows"] for body in driver.reports.values()) == (0 if error else 30)
    driver.close()
