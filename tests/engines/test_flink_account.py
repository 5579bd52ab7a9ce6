"""Accounts and answers of a Flink are read whole, or refused in one line."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.engines.flink.cluster import Cluster
from streamgauge.bench.engines.flink.flink_system import _marks


def test_a_watermark_that_a_crash_has_torn_stands_there_once_more(tmp_path: Path) -> None:
    first, second = ({"number": n, "rows": {"0": 1000 * n}, "watermarkMs": 5 * n} for n in (1, 2))
    whole = ['{"number":1,"rows":{"0":1000},"watermarkMs":5}', '{"number":2,"rows":{"0":2000},"watermarkMs":10}']
    account = tmp_path / "watermarks-0.jsonl"
    account.write_text("\n".join(["", whole[0], whole[1][:30], "", *whole, ""]))
    assert _marks(account) == {1: first, 2: second}


def test_a_cluster_that_takes_no_job_is_one_line() -> None:
    """Holds for `conf: {web.submit.enable: "false"}`."""
    cluster = Cluster.__new__(Cluster)
    refusal = SimpleNamespace(status=404, data=b'{"errors": ["Not found: /jars/upload"]}')
    cluster._system, cluster._port = SimpleNamespace(name="flink"), 1  # type: ignore[assignment]
    cluster._pool = SimpleNamespace(request=lambda *_, **__: refusal)  # type: ignore[assignment]
    with pytest.raises(UserError, match=r"^systems\.flink: Not found: /jars/upload$"):
        cluster._upload()
