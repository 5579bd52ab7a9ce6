"""One Airflow DAG per benchmark file."""

from streamgauge.airflow.factory import dags

for dag in dags():
    globals()[dag.dag_id] = dag
