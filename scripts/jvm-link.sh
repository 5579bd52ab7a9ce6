#!/bin/sh
# Makes .venvs/jvm-link: the JVM part of Spark's link, compiled with this JDK against the jars of the installed PySpark.
place=.venvs/jvm-link
shared=streamgauge/bench/engines/jvm/java/streamgauge
sources=streamgauge/bench/engines/spark/java/streamgauge
fail() { echo "streamgauge: $1" >&2; exit 1; }

command -v javac >/dev/null || fail "no javac on PATH; the JVM link needs a JDK, 17 or newer, not a JRE alone"
jars=$(.venv/bin/python -c 'from importlib.metadata import distribution as of
print(of("pyspark").locate_file("pyspark/jars"))') || fail "PySpark is not installed; install the extra jobs"
stamp=$(ls "$jars" | cat - "$shared"/*.java "$sources"/*.java "$0" | cksum)
test "$(cat "$place/.ready" 2>/dev/null)" = "$stamp" && { echo "$place"; exit 0; }
classes=$(mktemp -d) && trap 'rm -rf "$classes"' EXIT
javac -encoding UTF-8 --release 17 -Xlint:all,-path,-classfile -Werror -d "$classes" -cp "$jars/*" "$shared"/*.java "$sources"/*.java ||
    fail "the JVM link does not compile; is this JDK 17 or newer?"
mkdir -p "$place"
jar --create --file "$place/streamgauge-spark.jar" -C "$classes" . || fail "the jar cannot be written"
echo "$stamp" >"$place/.ready"
echo "$place"
