"""Measures a cell: a trial, its sustainable rate, latency at fractions of that rate. Judges nights and releases."""
