"""The batch stages. Importing this package prefers the installed PySpark; see installed.py."""

from streamgauge.spark.installed import prefer_installed

prefer_installed()
