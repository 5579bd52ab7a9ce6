"""Serves the pages of runs over HTTP, from artifacts on this machine or on a store: inside of Airflow, or alone.

FastAPI and uvicorn come with Airflow.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import socket
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import h11
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.middleware.base import RequestResponseEndpoint

from streamgauge.base.places import Remote, place
from streamgauge.catalog.artifacts import Store
from streamgauge.results.report import runs_page

#: what pages link to; nothing else of the artifacts is served, such as an Airflow's database and passwords
_TYPES = {
    ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png",
    ".json": "application/json", ".jsonl": "text/plain", ".csv": "text/csv", ".yaml": "text/plain",
    ".woff": "font/woff", ".woff2": "font/woff2",
}  # fmt: skip
#: bytes of a request's headers
MAX_HEADERS = 2**15
_FOLDERS = (("runs",), ("data", "validation"))
#: a page may run its own scripts, but may not act for the user who is logged in to this host
_HEADERS = {"Content-Security-Policy": "sandbox allow-scripts allow-downloads allow-popups allow-top-navigation"}


def app(
    artifacts: str | Path, dependencies: Sequence[Callable[..., Any]] = (), hosts: Collection[str] | None = None
) -> FastAPI:
    """Makes the application: / lists the runs, and every other path is that of a file of the artifacts.

    dependencies: FastAPI's, which refuse a request that may not see the pages. hosts: names by which the server may be
    asked, beside addresses; None for any, where somebody has logged in.
    """
    root = place(artifacts)
    pages = FastAPI(openapi_url=None, dependencies=[Depends(one) for one in dependencies])

    @pages.middleware("http")
    async def known_host(request: Request, go_on: RequestResponseEndpoint) -> Response:
        asked = request.headers.get("host", "")
        if hosts is not None and not is_host(asked, hosts):
            allowed = ", ".join(sorted(hosts))
            return PlainTextResponse(f"Host: found {asked[:80]!r}, allowed: an address, {allowed}", 421)
        return await go_on(request)

    @pages.get("/")
    def runs() -> Response:
        return HTMLResponse(runs_page.render(Store(root)), headers=_HEADERS)

    @pages.get("/{path:path}")
    def file(path: str) -> Response:
        kind = _TYPES.get(Path(path).suffix)
        if kind is None or not is_page(path):
            raise HTTPException(404, f"{path}: not a page of Streamgauge; its first page lists them")
        try:
            content = _content(root, path)
        except (OSError, ValueError):
            raise HTTPException(404, f"{path}: no such page yet; the first page lists those that exist") from None
        return Response(content, media_type=kind, headers=_HEADERS)

    return pages


def serve(artifacts: str | Path, host: str, port: int) -> None:
    """Serves the pages until SIGINT or SIGTERM."""
    # no trace of garbage behind a request, which has ended its connection: whoever asks could fill the log
    logging.getLogger("uvicorn.error").addFilter(
        lambda record: not (record.exc_info and isinstance(record.exc_info[1], h11.LocalProtocolError))
    )
    pages = app(artifacts, hosts={"localhost", socket.gethostname().lower(), host.lower()})
    # its other parser keeps headers of any size
    uvicorn.run(pages, host=host, port=port, log_level="warning", http="h11", h11_max_incomplete_event_size=MAX_HEADERS)


def is_host(asked: str, names: Collection[str]) -> bool:
    """True if a Host header names an address or one of these names.

    A page of another site can make a browser ask this server under a name of its own (DNS rebinding), but under none of
    these.
    """
    name = re.sub(r":\d{1,5}$", "", asked.strip().lower())
    try:
        ipaddress.ip_address(name.strip("[]"))
        return True
    except ValueError:
        return name in names


def _content(root: Path, path: str) -> bytes:
    """Reads a file of the artifacts. Raises OSError or ValueError; a link does not lead out of its folder."""
    file = root / path
    if not isinstance(file, Remote) and file.resolve() != root.resolve() / path:
        raise FileNotFoundError(path)
    return file.read_bytes()


def is_page(path: str) -> bool:
    """True for a path in the artifacts that may be served: the page of all nights, a run's file, or Data Docs."""
    parts = Path(path).parts
    if not path.isprintable() or any(part.startswith((".", "/")) for part in parts):
        return False
    return parts == ("dashboard.html",) or any(parts[: len(folder)] == folder for folder in _FOLDERS)
