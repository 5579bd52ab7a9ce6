"""Tests that secrets reach the processes that need them, and that nobody sees them on their way."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from streamgauge.app.airflow.submission import settings as submitted
from streamgauge.base import secrets, variables
from streamgauge.base.errors import UserError
from streamgauge.base.places import place
from streamgauge.bench.engines.spark import submit
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.config import Benchmark, keep, load, of_run
from streamgauge.streams.stages.session import session_conf
from tests.command import Call, run
from tests.config.marked import MARKS, SECRET_NAMES


def test_spark_s_secrets_reach_spark_submit_by_a_file_of_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "defaults").mkdir()
    (tmp_path / "defaults" / "spark-defaults.conf").write_text("spark.a b\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "defaults"))
    monkeypatch.setenv("STORE_KEY", "Mk51: key\\with =odd\tparts")
    conf = {"spark.authenticate.secret": "Mk50secret", "spark.key": "${STORE_KEY}", "spark.sql.x": "5"}
    made = submit.command(SparkSettings(name="s", conf=conf), Path("a.py"), tmp_path)
    assert "Mk5" not in " ".join(made)
    assert "spark.sql.x=5" in made
    file = Path(made[made.index("--properties-file") + 1])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == (
        "spark.a b\nspark.authenticate.secret=Mk50secret\nspark.key=Mk51\\:\\ key\\\\with\\ \\=odd\\tparts\n"
    )
    assert "--properties-file" not in submit.command(SparkSettings(name="s"), Path("a.py"), tmp_path)
    monkeypatch.delenv("STORE_KEY")
    with pytest.raises(UserError, match=r"systems.s.conf.spark.key: the environment has no variable STORE_KEY"):
        submit.command(SparkSettings(name="s", conf=conf), Path("a.py"), tmp_path)


@pytest.mark.parametrize("name", [name for name in SECRET_NAMES if name.startswith(("spark.", "fs."))])
def test_spark_leaves_secrets_out_of_its_event_log(name: str) -> None:
    made = submit.command(SparkSettings(name="s"), Path("a.py"), Path())
    (given,) = [one.partition("=")[2] for one in made if one.startswith("spark.redaction.regex=")]
    assert re.search(given, name)
    assert not any(
        re.search(given, other) for other in ("spark.sql.shuffle.partitions", "spark.master", "spark.app.id")
    )
    assert session_conf({}, "local[1]", {})["spark.redaction.regex"] == given


def test_secrets_of_a_connection_reach_spark_submit_by_a_file_of_its_owner() -> None:
    extra = {"conf": {"spark.hadoop.fs.s3a.secret.key": "Mk52secret", "spark.executor.memory": "2g"}}
    given = submitted("local[1]", extra, ["--config", "x"], python=sys.executable, stays=True)
    assert given["conf"]["spark.executor.memory"] == "2g"
    file = Path(given.pop("properties_file"))
    assert "Mk52" not in json.dumps(given)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().endswith("spark.hadoop.fs.s3a.secret.key=Mk52secret\n")


def test_variables_are_filled_in_by_the_process_that_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "Mk53secret")
    settings = {"a": ["x ${MY_KEY}"], "b": {"c": "${MY_KEY}"}, "d": 1}
    assert variables.filled(settings, "here") == {"a": ["x Mk53secret"], "b": {"c": "Mk53secret"}, "d": 1}
    assert secrets.masked_text("it said Mk53secret") == "it said ***"


@pytest.mark.parametrize("url", ["s3a://me:Mk54secret@bucket/x", "https://Mk54secret@host/x.csv"])
def test_a_url_with_a_user_part_is_refused_and_not_shown(url: str, marked: Path) -> None:
    marked.write_text(marked.read_text().replace("events.csv", json.dumps(url)))
    answer = run(Call(["check", str(marked)]))
    answer.refused("source.files: found a URL with a user part (not shown)")
    assert "Mk54" not in answer.err
    with pytest.raises(UserError, match=r"\*\*\*@.*: found a user part") as problem:
        place(url)
    assert "Mk54" not in str(problem.value)


def test_a_recorded_benchmark_gets_today_s_secrets_back_and_is_refused_without_them(
    marked: Path, tmp_path: Path
) -> None:
    made: Benchmark = load(marked)
    keep(made, tmp_path)
    text = (tmp_path / "benchmark.json").read_text()
    assert [mark for mark in MARKS if mark in text] == []
    assert of_run(tmp_path, made).systems == made.systems
    run(Call(["check", str(tmp_path / "benchmark.json")])).refused(
        "found ***, which stands for a secret in a run's record; write ${VARIABLE} of the environment, or the secret"
    )


def test_no_argument_of_a_process_shows_a_secret(tmp_path: Path) -> None:
    """The settings of a job reach it by its environment."""
    from streamgauge.bench.engines.job.running import Command

    command = Command(["sleep", "30"], {"DB_PASSWORD": "Mk55secret"}, tmp_path, tmp_path / "log")
    try:
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        assert "sleep 30" in listed
        assert "Mk55secret" not in listed
    finally:
        command.end()
