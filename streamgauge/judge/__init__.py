"""Judges lists of numbers: A/B comparison, change points, what to rerun. It needs no clock and no database."""
