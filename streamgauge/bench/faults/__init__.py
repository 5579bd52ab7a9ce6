"""Faults in the middle of a trial: strikes that bring them about, and what the driver's samples tell of them."""
