"""Airflow: turns benchmark files into DAGs, which a command or Airflow's web page runs."""
