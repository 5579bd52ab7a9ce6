"""Runs the batch stages. On import, it prefers the installed PySpark to spark-submit's archive; see installed.py."""

from streamgauge.streams.stages.installed import prefer_installed

prefer_installed()
