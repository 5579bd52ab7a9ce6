"""Errors, units and paths, which all other packages use."""
