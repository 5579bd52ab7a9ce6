"""Right answers, independent of the measured engine, and the checks against them."""
