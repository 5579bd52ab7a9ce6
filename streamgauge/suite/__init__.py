"""Whole suites of queries on finite streams, each answer checked."""
