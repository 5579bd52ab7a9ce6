"""Judgement over lists of numbers: A/B comparison, change points, what to rerun. No clock, no database."""
