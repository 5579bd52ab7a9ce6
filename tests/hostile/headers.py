"""Requests of HTTP to the server of pages, with hostile lines, headers and bodies."""

from __future__ import annotations

import base64
import contextlib
import json
import random
import socket
import threading
import time
from pathlib import Path

import psutil

from tests.hostile.draw import MARK, Draw

PAGE = b"<p>a page</p>"
PATHS = [
    "/", "/runs/one/index.html", "/dashboard.html", "/runs/one/index.html%00", "/%00",
    "/runs/../airflow/ui/passwords.json",
    "/runs/%2e%2e/airflow/ui/passwords.json", "/runs/..%2fairflow/ui/passwords.json", "/airflow/ui/passwords.json",
    "//airflow/ui/passwords.json", "/runs/one/link.json", "/runs/linked/passwords.json", "/results.db",
    "/runs/one/.env.json",
    "/runs/one\\..\\..\\airflow\\ui\\passwords.json", "/" + "x" * 9000, "/" + "a/" * 4000,
    "/runs/" + "%ff" * 100 + ".html",
    "/runs/é.html", "http://127.0.0.1/airflow/ui/passwords.json", "*", "", "/?" + "a=b&" * 3000,
    "/runs/one/index.html?x=%00",
    "/runs/one/index.html;x", "/data/validation/%2e%2e/%2e%2e/airflow/ui/passwords.json", "/runs/one/index.html/",
    "/dev/zero", "/runs/one/zero.html", "/runs/one/pipe.html", "/file:///etc/passwd", "/runs/one/%1b%5b2J.html",
]  # fmt: skip
HEADERS = [
    "Host: localhost", "Host: 127.0.0.1", "Host: evil.example", "Host: localhost\r\nHost: evil.example", "Host:",
    "Host: \0",
    "Host: [::1", "Host: " + "x" * 40_000, "Range: bytes=0-1", "Range: bytes=-99999999999999999999",
    "Connection: close",
    "Transfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 3", "Content-Length: -1",
    "Content-Length: 99999999999999999999", "Content-Length: 5\r\nContent-Length: 6", "Expect: 100-continue",
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13",
    "Upgrade: h2c\r\nHTTP2-Settings: x", "X-Forwarded-Host: evil.example", "X-Forwarded-For: ' or 1",
    "Cookie: " + "a=b;" * 2000,
    "Accept-Encoding: gzip, *;q=0", "If-Modified-Since: nope", "Authorization: Basic \xff", "bad header", " folded: x",
    ": x",
    "X: a\r\n b", "X-\0: y", *(f"X{n}: {'y' * 300}" for n in range(3)), "X-HTTP-Method-Override: DELETE",
]  # fmt: skip
METHODS = ["GET"] * 8 + [
    "POST",
    "HEAD",
    "OPTIONS",
    "PUT",
    "DELETE",
    "TRACE",
    "CONNECT",
    "PRI",
    "get",
    "G\0T",
    "",
    "X" * 5000,
]


def headers(random: random.Random) -> Draw:
    requests = []
    for _ in range(random.choice([1, 2, 4])):
        version = random.choice(["HTTP/1.1"] * 8 + ["HTTP/1.0", "HTTP/2.0", "HTTP/9", "", "HTTP/1.1 x"])
        lines = [f"{random.choice(METHODS)} {random.choice(PATHS)} {version}"]
        lines += random.sample(HEADERS, random.choice([0, 1, 2, 5])) + random.choice([[], ["Host: localhost"] * 1] * 2)
        lines += [f"Z{n}: z" for n in range(random.choice([0] * 9 + [3000]))]
        end = random.choice(["\r\n\r\n"] * 8 + ["\n\n", "\r\n", "", "\r\n\r\n" + "5\r\nhello\r\n0\r\n\r\n"])
        text = random.choice(["\r\n"] * 9 + ["\n"]).join(lines) + end
        requests.append(
            base64.b64encode(text.encode("latin-1", "replace") + random.choice([b""] * 4 + [b"x" * 10**6])).decode()
        )
    return Draw(["pages"], {"requests": json.dumps(requests).encode()})


def pages(work: Path) -> int:
    """Serves a small store, sends the requests, and asserts what is answered, also to an honest client afterwards."""
    from streamgauge.app.airflow import page_server
    from streamgauge.bench.driver.ports import free_port

    requests = [base64.b64decode(one) for one in json.loads((work / "requests").read_bytes())]
    root, port = _store(work / "artifacts"), free_port(0, "127.0.0.1")
    threading.Thread(target=page_server.serve, args=(str(root), "127.0.0.1", port), daemon=True).start()
    honest = b"GET /runs/one/index.html HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    deadline = time.monotonic() + 20
    while PAGE not in _asked(port, honest, 5):
        assert time.monotonic() < deadline, "the server does not answer"
        time.sleep(0.01)
    before = psutil.Process().memory_info().rss
    for one in requests:
        answer = _asked(port, one, 0.3)
        assert MARK.encode() not in answer, "a file was given away"
        assert not answer.startswith(b"HTTP/1.1 5"), answer[:200]
        assert b"Traceback" not in answer
        if b"evil.example" in one and b"Host: localhost" not in one and b"Host: 127" not in one and b"\nX-F" not in one:
            assert PAGE not in answer, "a foreign name was answered"
    assert PAGE in _asked(port, honest, 10), "the honest client is not answered any more"
    assert psutil.Process().memory_info().rss - before < 100 << 20, "requests took memory"
    return 0


def _store(root: Path) -> Path:
    """A run with a page, an Airflow with its password, and links to it and to devices."""
    for name in (
        "runs/one/index.html",
        "dashboard.html",
        "airflow/ui/passwords.json",
        "results.db",
        "runs/one/.env.json",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(PAGE if name.endswith("html") else MARK.encode())
    (root / "runs" / "one" / "link.json").symlink_to(root / "airflow" / "ui" / "passwords.json")
    (root / "runs" / "one" / "zero.html").symlink_to("/dev/zero")
    (root / "runs" / "one" / "pipe.html").symlink_to(root.parent / "pipe")
    (root / "runs" / "linked").symlink_to(root / "airflow" / "ui")
    return root


def _asked(port: int, request: bytes, seconds: float) -> bytes:
    """Returns what the server answers in that time, up to 1 MB."""
    answer = b""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(request)
        while len(answer) < 10**6 and (part := connection.recv(100_000)):
            answer += part
    return answer
