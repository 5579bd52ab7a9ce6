"""The calibration instrument: a plain system of known behaviour over the real wire."""
