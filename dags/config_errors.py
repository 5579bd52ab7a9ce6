"""Airflow shows an import error per DAG file: this one is for benchmark files that don't load, and harms no other."""

from streamgauge.airflow.factory import config_files, load_all

_, problems = load_all(config_files())
if problems:
    raise SystemExit("; ".join(problems))
