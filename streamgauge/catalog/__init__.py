"""Stages, keys, artifacts, runs and results: what there is, and where it lies."""
