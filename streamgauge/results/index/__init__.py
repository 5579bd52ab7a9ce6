"""The SQL index of all results. Each run's JSON lines are the truth; the index can be rebuilt from them."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.base.places import here, place
from streamgauge.base.words import counted
from streamgauge.results.index.result_index import Index

__all__ = ["Index", "default_url", "index_run"]


def default_url(artifacts: Path) -> str:
    """Database URL: STREAMGAUGE_DATABASE if it is set, else an SQLite file among the artifacts."""
    if url := os.environ.get("STREAMGAUGE_DATABASE"):
        return url
    folder = str(here(place(artifacts)))
    if "?" in folder:  # a URL ends there
        raise UserError(f"{folder}: found ? in a folder's name, allowed: a name without it, or STREAMGAUGE_DATABASE")
    return f"sqlite:///{folder}/results.db"


def index_run(artifacts: Path, run_id: str) -> str:
    """Adds a run's results to the index and returns a message.

    A database that is down fails no run: the records stay, and the message says how to add them later.
    """
    try:
        added = Index(default_url(artifacts)).add_run(place(artifacts) / "runs" / run_id)
    except UserError as problem:
        said = f"results not indexed: {problem}; later: `streamgauge results add`"
        logging.getLogger("streamgauge").warning(said)
        return said
    return f"{counted(added, 'result')} added"
