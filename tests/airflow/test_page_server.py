"""Tests which files of the artifacts the pages' server gives, and the page that lists the runs."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest
from fastapi import FastAPI, HTTPException

from streamgauge.app.airflow import page_server
from streamgauge.base.errors import UserError
from streamgauge.base.places import Remote, place
from streamgauge.bench.driver.ports import free_port
from streamgauge.catalog.run_log import RunLog
from tests.stores import object_store

HIDDEN = (
    "airflow/ui/passwords.json", "results.db", "data/stream/1/manifest.json", "runs/one/.env.json",
    "runs/one/x.parquet", "runs/one/missing.html", "runs/../airflow/ui/passwords.json",
    "runs/%2e%2e/airflow/ui/passwords.json",
    "runs/one/index.html%00", "runs/one/%00.html", "runs/one/link.json", "runs/linked/passwords.json",
)  # fmt: skip


def fill(root: Path) -> None:
    """Two runs, one of which failed and has no page; the page of nights; and what nobody may see."""
    for name in ("runs/one/index.html", "runs/one/release.html", "data/validation/1/index.html", "dashboard.html"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(f"<p>{name}".encode())
    for name in ("airflow/ui/passwords.json", "data/stream/1/manifest.json", "runs/one/.env.json"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"{}")
    if not isinstance(root, Remote):
        (root / "runs" / "one" / "link.json").symlink_to(root / "airflow" / "ui" / "passwords.json")
        (root / "runs" / "linked").symlink_to(root / "airflow" / "ui")
    (root / "runs" / "two").mkdir()
    with RunLog(root / "runs" / "one").stage("ingest", {}):
        pass
    with pytest.raises(UserError), RunLog(root / "runs" / "two").stage("ingest", {}):
        raise UserError("no <file>")


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    fill(tmp_path)
    return page_server.app(tmp_path)


def get(app: FastAPI, path: str) -> httpx.Response:
    async def answer() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://pages") as client:
            return await client.get(path)

    return asyncio.run(answer())


@pytest.mark.parametrize("path", ["runs/one/index.html", "data/validation/1/index.html", "dashboard.html"])
def test_a_page_is_served_as_it_is_and_may_not_act_for_the_user(app: FastAPI, path: str) -> None:
    found = get(app, f"/{path}")
    assert (found.status_code, found.text) == (200, f"<p>{path}")
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    assert "allow-same-origin" not in found.headers["content-security-policy"]


def test_records_are_served_as_plain_data(app: FastAPI) -> None:
    found = get(app, "/runs/one/stages.jsonl")
    assert (found.status_code, found.headers["content-type"]) == (200, "text/plain; charset=utf-8")


@pytest.mark.parametrize("path", HIDDEN)
def test_nothing_else_of_the_artifacts_is_served(app: FastAPI, path: str) -> None:
    assert get(app, f"/{path}").status_code == 404


@pytest.mark.parametrize(
    ("asked", "is_known"),
    [
        ("localhost:8081", True), ("127.0.0.1:8081", True), ("[::1]:8081", True), ("192.168.1.7", True),
        ("Gauge:8081", True), ("evil.example:8081", False), ("localhost.evil.example", False), ("", False),
        ("127.0.0.1.evil.example", False),
    ],
)  # fmt: skip
def test_a_name_that_is_not_this_servers_is_refused(tmp_path: Path, asked: str, is_known: bool) -> None:
    fill(tmp_path)
    app = page_server.app(tmp_path, hosts={"localhost", "gauge"})

    async def answer() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://pages") as client:
            return await client.get("/runs/one/index.html", headers={"Host": asked})

    assert asyncio.run(answer()).status_code == (200 if is_known else 421)


def test_headers_have_a_bound(tmp_path: Path) -> None:
    fill(tmp_path)
    port = free_port(0, "127.0.0.1")
    code = f"from streamgauge.app.airflow import page_server; page_server.serve({str(tmp_path)!r}, '127.0.0.1', {port})"
    server = subprocess.Popen([sys.executable, "-c", code])
    try:
        for _ in range(300):
            with suppress(httpx.TransportError):
                assert httpx.get(f"http://127.0.0.1:{port}/dashboard.html").status_code == 200
                break
            time.sleep(0.1)
        before = psutil.Process(server.pid).memory_info().rss
        with socket.create_connection(("127.0.0.1", port), timeout=10) as greedy, suppress(OSError):
            greedy.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
            for _ in range(60):
                greedy.sendall(b"x" * 1_000_000)
        assert psutil.Process(server.pid).memory_info().rss - before < 20_000_000
        assert httpx.get(f"http://127.0.0.1:{port}/dashboard.html").status_code == 200
    finally:
        server.terminate()
        server.wait(10)


def test_the_list_of_runs_has_a_link_to_each_page_and_no_chart_code(app: FastAPI) -> None:
    page = get(app, "/").text
    for link in ("runs/one/index.html", "runs/one/release.html", "dashboard.html"):
        assert f'href="{link}"' in page
    assert "2 runs" in page
    assert "1 failed" in page
    assert "runs/two/" not in page
    assert len(page) < 100_000


def test_a_folder_without_runs_says_how_to_make_one(tmp_path: Path) -> None:
    app = page_server.app(tmp_path)
    assert "none has begun here yet" in get(app, "/").text


def test_whoever_is_refused_sees_neither_list_nor_page(tmp_path: Path) -> None:
    fill(tmp_path)

    def refuse() -> None:
        raise HTTPException(403, "no")

    app = page_server.app(tmp_path, [refuse])
    assert [get(app, path).status_code for path in ("/", "/runs/one/index.html")] == [403, 403]


def test_pages_on_a_store_are_served_too() -> None:
    with object_store() as (there, _):
        fill(place(there))
        app = page_server.app(there)
        assert get(app, "/runs/one/index.html").text == "<p>runs/one/index.html"
        assert 'href="runs/one/index.html"' in get(app, "/").text
        assert get(app, "/runs/one/missing.html").status_code == 404
