#!/bin/sh
# .venv/spark.jsa: the classes that Spark loads, laid out as a JVM maps them (AppCDS, JEP 350), for a quicker start.
# Everything works without it, so a failure is only reported. It is renamed when complete: a JVM trusts what it maps.
# One that is newer than Spark's jars is kept.
jars=$(.venv/bin/python -c 'import pyspark, pathlib; print(pathlib.Path(pyspark.__file__).parent / "jars")') || exit 0
[ .venv/spark.jsa -nt "$jars" ] && exit 0
half=.venv/.spark.jsa.$$
trap 'rm -f "$half"' EXIT
options="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -Xlog:disable -XX:ArchiveClassesAtExit='$PWD/$half'"
PYTHONPATH=$PWD PYSPARK_PYTHON=.venv/bin/python PYSPARK_DRIVER_PYTHON=.venv/bin/python \
    .venv/bin/spark-submit --driver-java-options "$options" --conf spark.ui.enabled=false \
    scripts/class_archive.py >/dev/null 2>&1 && mv "$half" .venv/spark.jsa ||
    echo "could not make the class archive: stages start slower"
exit 0
