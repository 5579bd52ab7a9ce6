"""Errors, units, places: what every room stands on."""
