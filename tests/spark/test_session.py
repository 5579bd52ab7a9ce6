"""Tests the address at which executors find the driver, however the master was named, and what they are given."""

from __future__ import annotations

import py_compile
import shutil
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from streamgauge.base.errors import UserError
from streamgauge.streams.disorder import generation
from streamgauge.streams.stages.session import library_zip, session_conf


def own_address() -> str:
    """Address of this host as other hosts see it; loopback without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def test_the_driver_is_reachable_from_the_master_s_host() -> None:
    address = own_address()
    with socket.create_server((address, 0)) as standing_in:
        master = f"spark://{address}:{standing_in.getsockname()[1]}"
        for found in (session_conf({"spark.master": master}, None, {}), session_conf({}, master, {})):
            assert found["spark.master"] == master
            assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == address
        behind_a_gateway = {"spark.master": master, "spark.driver.host": "gateway"}
        assert "spark.driver.host" not in session_conf(behind_a_gateway, None, {}), "what was submitted wins"
    with pytest.raises(UserError, match="no Spark master answers there"):
        session_conf({"spark.master": master}, None, {})


def test_more_threads_than_spark_can_start_are_refused_at_once() -> None:
    with pytest.raises(UserError, match="local with at most 1,024 threads"):
        session_conf({}, "local[99999]", {})


def test_of_several_masters_the_first_that_answers_is_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as standing_in:
        masters = f"spark://127.0.0.1:1,127.0.0.1:{standing_in.getsockname()[1]}"
        assert session_conf({}, masters, {})["spark.driver.host"] == "127.0.0.1"


def test_alone_on_this_host_it_is_reachable_from_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert session_conf({}, None, {})["spark.driver.host"] == "127.0.0.1"
    assert session_conf({"spark.master": "local[*]"}, "local[1]", {})["spark.master"] == "local[1]"
    assert "spark.driver.host" not in session_conf({"spark.master": "yarn"}, None, {})


def test_what_executors_get_is_this_library_with_the_modules_that_are_compiled() -> None:
    py_compile.compile(generation.__file__)
    library = library_zip()
    try:
        asked = (
            f"import sys; sys.path.insert(0, {str(library)!r}); import {generation.__name__} as it; print(it.__file__)"
        )
        told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, cwd=library.parent)
        assert told.stdout == f"{library}/streamgauge/streams/disorder/generation.pyc\n", told.stderr
    finally:
        shutil.rmtree(library.parent)


def test_what_executors_get_holds_packages_within_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither `company` nor the folder `inner` has an __init__.py."""
    files = {
        "company/flows/__init__.py": "", "company/flows/inner/queries.py": "ONE = 1", "company/alone.py": "TWO = 2",
        "company/stranger/__init__.py": "1 / 0", "company-1.dist-info/METADATA": "Name: company\nVersion: 1\n",
        "company-1.dist-info/entry_points.txt":
            "[streamgauge.workloads]\none = company.flows.inner.queries:ONE\ntwo = company.alone:TWO\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    library = library_zip()
    try:
        script = (
            f"import sys; sys.path.insert(0, {str(library)!r}); from company import alone; "
            "from company.flows.inner import queries; print(queries.ONE, alone.TWO, queries.__file__)"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=library.parent)
        assert done.stdout == f"1 2 {library}/company/flows/inner/queries.py\n", done.stderr
        assert not [name for name in zipfile.ZipFile(library).namelist() if "stranger" in name]
    finally:
        shutil.rmtree(library.parent)
        for name in [name for name in sys.modules if name.split(".")[0] == "company"]:
            del sys.modules[name]
