"""Airflow: benchmark files become DAGs, and one command or one page runs them."""
