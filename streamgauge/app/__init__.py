"""Starts all other parts for people and clocks: the command, Airflow, nights."""
