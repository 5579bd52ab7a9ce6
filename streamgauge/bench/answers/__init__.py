"""Runs whole suites of queries on finite streams and checks each answer."""
