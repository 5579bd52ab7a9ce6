"""The button on a task that leads to the page of its run, which Airflow's web server has (plugin.py)."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

from streamgauge.app.airflow import run_names


class PageLink(BaseOperatorLink):
    name = "Page of the run"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 (Airflow passes it by name)
        base = str(conf.get("api", "base_url", fallback="/")).rstrip("/")
        return f"{base}{run_names.PREFIX}/{run_names.page(ti_key.dag_id, ti_key.run_id)}"
