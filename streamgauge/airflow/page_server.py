"""Serves the pages of runs over HTTP, from artifacts on this machine or on a store: inside of Airflow, or alone.

FastAPI and uvicorn come with Airflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import HTMLResponse, Response

from streamgauge.base.places import place
from streamgauge.catalog.artifacts import Store
from streamgauge.report import runs_page

#: what pages link to; nothing else of the artifacts is served, such as an Airflow's database and passwords
_TYPES = {
    ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png",
    ".json": "application/json", ".jsonl": "text/plain", ".csv": "text/csv", ".yaml": "text/plain",
    ".woff": "font/woff", ".woff2": "font/woff2",
}  # fmt: skip
_FOLDERS = (("runs",), ("data", "validation"))
#: a page may run its own scripts, but may not act for the user who is logged in to this host
_HEADERS = {"Content-Security-Policy": "sandbox allow-scripts allow-downloads allow-popups allow-top-navigation"}


def app(artifacts: str | Path, dependencies: Sequence[Callable[..., Any]] = ()) -> FastAPI:
    """Makes the application: / lists the runs, and every other path is that of a file of the artifacts.

    dependencies: FastAPI's, which refuse a request that may not see the pages.
    """
    root = place(artifacts)
    made = FastAPI(openapi_url=None, dependencies=[Depends(one) for one in dependencies])

    @made.get("/")
    def runs() -> Response:
        return HTMLResponse(runs_page.render(Store(root)), headers=_HEADERS)

    @made.get("/{path:path}")
    def file(path: str) -> Response:
        kind = _TYPES.get(Path(path).suffix)
        if kind is None or not is_page(path):
            raise HTTPException(404, f"{path}: not a page of Streamgauge; its first page lists them")
        try:
            content = (root / path).read_bytes()
        except OSError:
            raise HTTPException(404, f"{path}: no such page yet; the first page lists those that exist") from None
        return Response(content, media_type=kind, headers=_HEADERS)

    return made


def serve(artifacts: str | Path, host: str, port: int) -> None:
    """Serves the pages until SIGINT or SIGTERM."""
    uvicorn.run(app(artifacts), host=host, port=port, log_level="warning")


def is_page(path: str) -> bool:
    """True for a path in the artifacts that may be served: the page of all nights, a run's file, or Data Docs."""
    parts = Path(path).parts
    if any(part.startswith((".", "/")) for part in parts):
        return False
    return parts == ("dashboard.html",) or any(parts[: len(folder)] == folder for folder in _FOLDERS)
