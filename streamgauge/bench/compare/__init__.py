"""Compares two versions, by rules that nights, release checks and gates share."""
