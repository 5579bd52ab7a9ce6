"""The SQL index of all results. JSON lines in each run are the truth; this can be rebuilt from them at any time."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from streamgauge.errors import UserError
from streamgauge.places import here, place
from streamgauge.store.index import Index

__all__ = ["Index", "default_url", "index_run"]


def default_url(artifacts: Path) -> str:
    """STREAMGAUGE_DATABASE, or a file among the artifacts."""
    return os.environ.get("STREAMGAUGE_DATABASE") or f"sqlite:///{here(place(artifacts)) / 'results.db'}"


def index_run(artifacts: Path, run_id: str) -> str:
    """Adds a run's results. A database that is down fails no run: the records stay, and it says how to add them."""
    try:
        added = Index(default_url(artifacts)).add_run(place(artifacts) / "runs" / run_id)
    except UserError as problem:
        said = f"results not indexed: {problem}; later: `streamgauge results add`"
        logging.getLogger("streamgauge").warning(said)
        return said
    return f"{added} results added"
