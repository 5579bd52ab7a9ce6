"""Lines of a job, as the engines themselves read them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamgauge.app.services.java_server import jars
from streamgauge.bench.engines.flink.settings import HOME
from streamgauge.streams.advice.lines import lines
from tests.advice.test_lines import DAY, MS, S, question

pytestmark = pytest.mark.spark
#: in ns: none, one unit, two digits, three, a fraction, more than an int of milliseconds, none that is whole
DELAYS = (
    0,
    S,
    37 * S,
    3700 * S,
    90 * 60 * S,
    1500 * MS,
    5 * MS,
    7 * DAY,
    400 * DAY,
    40 * DAY + MS,
    999 * DAY + MS,
    1001 * S,
)


def test_spark_reads_its_line(spark: SparkSession) -> None:
    frame = spark.readStream.format("rate").load()
    assert spark._jvm is not None
    logical = spark._jvm.org.apache.spark.sql.catalyst.plans.logical
    for delay in DELAYS:
        line = lines(question("event"), delay, "ns", "timestamp")[0].text
        ((column, text),) = re.findall(r'^\.withWatermark\("(\w+)", "(.+)"\)$', line)
        plan = frame.withWatermark(column, text)._jdf.queryExecution().logical()
        assert (text, logical.EventTimeWatermark.getDelayMs(plan.delay())) == (text, delay // MS)


@pytest.mark.usefixtures("flink_is_made")
def test_flink_and_kafka_streams_read_their_lines(tmp_path: Path) -> None:
    asked = (question("tumbling", 60 * S, 60 * S), question("sliding", 60 * S, 10 * S), question("session", 30 * S),
             question("join", 3600 * S))  # fmt: skip
    calls, wanted = list[str](), list[str]()
    for delay in DELAYS:
        ms = delay // MS
        made = {one.engine: one.text for one in lines(asked[0], delay, "ns", idle=90 * S)}
        calls += [f"delay({made['Flink']})", f'sql("{made["Flink SQL"]}")']
        wanted += [str(ms), str(ms)]
        windows = ("60000 60000", "60000 10000", "30000", "3600000 3600000")
        for one, read in zip(asked, windows, strict=True):
            calls.append(f"of({lines(one, delay, 'ns')[-1].text})")
            wanted.append(f"{read} {ms}")
    text = Path(__file__).with_name("Lines.java").read_text()
    (tmp_path / "Lines.java").write_text(
        text.replace("//LINES", "\n".join(f"System.out.println({call});" for call in calls))
    )
    classes = f"{HOME}/pyflink/lib/*:{jars('streams')}/*"
    run = subprocess.run(["java", "-cp", classes, str(tmp_path / "Lines.java")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == wanted
