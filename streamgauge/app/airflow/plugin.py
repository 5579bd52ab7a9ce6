"""Adds Streamgauge's pages to Airflow's web server, below /streamgauge, for whoever is logged in and may see DAGs.

Airflow finds the plugin by the entry point in pyproject.toml. FastAPI is imported by the web server alone.
"""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from streamgauge.app.airflow.run_names import PREFIX


class Pages(AirflowPlugin):
    name = "streamgauge"
    external_views: ClassVar = [
        {"name": "Streamgauge", "href": f"{PREFIX}/", "destination": "nav", "category": "browse"}
    ]

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:
        from streamgauge.app.airflow import web_pages

        return [{"app": web_pages.app(PREFIX), "url_prefix": PREFIX, "name": "Streamgauge's pages"}]
