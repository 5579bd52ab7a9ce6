"""Figures in the formats of other tools: Bencher, Apache Otava, Prometheus. Pure: figures in, text out, and back."""
