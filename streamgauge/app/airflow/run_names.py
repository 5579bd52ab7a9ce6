"""Names of DAGs, of the folders that hold their runs' records, and of their pages; each follows from the DAG's name."""

from __future__ import annotations

import re
from typing import NamedTuple

#: where Airflow's web server has the pages
PREFIX = "/streamgauge"


class Kind(NamedTuple):
    """A kind of DAG: how its name begins, how its runs' folders go on after the benchmark's name, and its page."""

    prefix: str
    suffix: str
    page: str


RUN = Kind("streamgauge", "", "index.html")
NIGHT = Kind("streamgauge-nightly", "-nightly", "index.html")
RELEASE = Kind("streamgauge-release", "-release", "release.html")
_KINDS = {kind.prefix: kind for kind in (RUN, NIGHT, RELEASE)}


def dag_id(kind: Kind, benchmark: str) -> str:
    return f"{kind.prefix}_{benchmark}"


def folder(dag_id: str, run_id: str) -> str:
    """Name of the folder below runs/ that holds the records of a DAG run. Raises KeyError for a DAG of others.

    Example: streamgauge-nightly_flights, manual__1 -> flights-nightly-manual__1.
    """
    prefix, _, benchmark = dag_id.partition("_")
    return f"{benchmark}{_KINDS[prefix].suffix}-{re.sub(r'[^A-Za-z0-9_.-]', '-', run_id)}"


def page(dag_id: str, run_id: str) -> str:
    """Path of a DAG run's page within the artifacts. Raises KeyError for a DAG of others."""
    return f"runs/{folder(dag_id, run_id)}/{_KINDS[dag_id.partition('_')[0]].page}"
