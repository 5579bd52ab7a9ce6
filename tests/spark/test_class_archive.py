"""Spark's classes laid out for a quicker start: mapped where they fit, passed over in silence where not."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from streamgauge.streams.stages import session


@pytest.fixture(autouse=True)
def _as_a_user_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)


def test_the_jvm_of_a_stage_maps_what_make_setup_has_laid_out(tmp_path: Path) -> None:
    loaded = tmp_path / "loaded"
    options = f"{session.quick_jvm()} -Xlog:class+load:file={loaded}"
    submit = Path(sys.executable).with_name("spark-submit")
    done = subprocess.run(
        [submit, "--driver-java-options", options, "--version"],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "deploy.SparkSubmit source: shared objects file (top)" in loaded.read_text()


@pytest.mark.parametrize("content", [b"no archive", b""])
def test_an_archive_that_does_not_fit_is_passed_over_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(session, "_CLASSES", tmp_path / "a place" / "spark.jsa")
    session._CLASSES.parent.mkdir()
    session._CLASSES.write_bytes(content)
    assert silent(tmp_path)


def test_the_archive_of_another_class_path_is_passed_over_in_silence(tmp_path: Path) -> None:
    assert silent(tmp_path)


def silent(class_path: Path) -> bool:
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    command = [java, *shlex.split(session.quick_jvm()), "-cp", str(class_path), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode == 0 and done.stderr == "" and "shared archive" not in done.stdout


def test_without_an_archive_the_options_are_as_for_another_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_CLASSES", tmp_path / "none.jsa")
    assert session.quick_jvm() == session.BATCH_JVM
