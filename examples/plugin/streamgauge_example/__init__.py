"""Parts for Streamgauge in a package of their own."""
