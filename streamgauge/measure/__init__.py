"""Measuring a cell: one trial, the search for its sustainable rate, latency at fractions of that rate."""
