"""Fails to import if a benchmark file does not load, so that Airflow shows the error and still loads the other file."""

from streamgauge.airflow.factory import config_files, load_all

_, problems = load_all(config_files())
if problems:
    raise SystemExit("; ".join(problems))
