"""Fails to import if a benchmark file does not load: Airflow shows the error, and the other DAG file still loads.

Airflow parses only files whose text has both of its words, "airflow" and "dag".
"""

from streamgauge.app.airflow.dag_files import check

check()
