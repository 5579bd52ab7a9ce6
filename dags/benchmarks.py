"""Builds an Airflow DAG for each benchmark file, and another one for its release check."""

from streamgauge.airflow import release_dag
from streamgauge.airflow.factory import dags

for dag in (*dags(), *release_dag.dags()):
    globals()[dag.dag_id] = dag
