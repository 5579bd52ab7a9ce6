"""A pipeline that counts, as an application of its own: `python app.py MASTER` prints its metrics at the end."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from streamgauge import metrics

ROWS, PARTITIONS = 20_000, 8


@metrics.step("parse")
def parse(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        metrics.counter("lines", "read").inc(batch.num_rows)
        metrics.distribution("lines", "id").update_many(batch.column(0))
        metrics.gauge("lines", "last").set(batch.column(0)[-1], at_ns=batch.column(0)[-1].as_py())
        yield batch


@metrics.step("sort")
def sort(batches: Iterator[Any]) -> Iterator[Any]:
    import numpy as np

    for batch in batches:
        for residue, many in enumerate(np.bincount(batch.column(0).to_numpy() % 5, minlength=5)):
            metrics.counter("residues", f"is_{residue}").inc(many)
        yield batch


@metrics.step("slow")
def stuck_once(batches: Iterator[Any]) -> Iterator[Any]:
    """Partition 0's first attempt counts, tells, and hangs until its speculative copy has won."""
    from pyspark import TaskContext

    context = TaskContext.get()
    for batch in batches:
        metrics.counter("lines", "slow").inc(batch.num_rows)
        if context.partitionId() == 0 and context.attemptNumber() == 0:
            time.sleep(1.2)
            metrics.counter("lines", "slow").inc(0)
            metrics.counter("lines", "untold").inc(7)
            time.sleep(300)
        yield batch


CONF = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "5",
    "spark.speculation.minTaskRuntime": "15s",
}


def main(master: str) -> None:
    from streamgauge.streams.stages.session import batch_session

    spark = batch_session("counted", master, CONF)
    with metrics.start(spark, name="app") as pipeline:
        frame = (
            spark.range(0, ROWS, 1, PARTITIONS).mapInArrow(parse, "id long").repartition(3).mapInArrow(sort, "id long")
        )
        frame.write.format("noop").mode("append").save()
        spark.range(0, 1000, 1, 4).mapInArrow(stuck_once, "id long").write.format("noop").mode("append").save()
        shown = pipeline.query()
    spark.stop()
    print(json.dumps([dataclasses.asdict(metric) for metric in shown]))


if __name__ == "__main__":
    main(sys.argv[1])
