"""Builds an Airflow DAG for each benchmark file, and more for its nights and its release check."""

from streamgauge.app.airflow.dag_files import dags

globals().update(dags())
