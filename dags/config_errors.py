"""Fails to import if a benchmark file does not load: Airflow shows the error, and the other DAG file still loads.

Airflow parses only files whose text has both of its words, "airflow" and "dag".
"""

from streamgauge.airflow.factory import config_files, load_all

_, problems = load_all(config_files())
if problems:
    raise SystemExit("; ".join(problems))
