"""Measures a cell: its trials, its sustainable rate, and its latency at fractions of that rate."""
