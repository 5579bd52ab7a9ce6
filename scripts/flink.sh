#!/bin/sh
# Makes .venvs/flink: Apache Flink from the package index, and Streamgauge's part in Java, compiled with this JDK.
# Another version, the argument, gets a folder of its own: .venvs/flink-2.2.1.
ours=2.3.0
version=${1:-$ours}
place=.venvs/flink
test "$version" = "$ours" || place=.venvs/flink-$version
shared=streamgauge/bench/engines/jvm/java
sources=streamgauge/bench/engines/flink/java
fail() { echo "streamgauge: $1" >&2; exit 1; }

command -v javac >/dev/null || fail "no javac on PATH; Flink's part needs a JDK, 17 or newer, not a JRE alone"
stamp=$(cat "$shared"/streamgauge/*.java "$sources"/streamgauge/*.java "$0" | cksum)
test "$(cat "$place/.ready" 2>/dev/null)" = "$stamp" && { echo "$place"; exit 0; }
mkdir -p "$place"
if ! test -e "$place/pyflink/lib/flink-dist-$version.jar"; then
    rm -rf "$place" && mkdir -p "$place"
    # its jars and scripts alone: its Python dependencies do not go with ours
    .venv/bin/uv pip install --quiet --no-deps --python .venv/bin/python --target "$place" \
        "apache-flink==$version" "apache-flink-libraries==$version" ||
        fail "apache-flink $version cannot be installed; is the package index reachable?"
    ln -s "../opt/flink-python-$version.jar" "$place/pyflink/lib/" # it has the reader of Arrow
fi
classes=$(mktemp -d) && renamed=$(mktemp -d) && trap 'rm -rf "$classes" "$renamed"' EXIT
# Flink has Arrow and Jackson under names of its own
for file in "$shared"/streamgauge/*.java; do
    sed 's/org\.apache\.arrow/org.apache.flink.api.python.shaded.&/
        s/com\.fasterxml\.jackson/org.apache.flink.shaded.jackson2.&/' "$file" >"$renamed/${file##*/}"
done
javac -encoding UTF-8 --release 17 -Xlint:all -Werror -d "$classes" -cp "$place/pyflink/lib/*" "$renamed"/*.java "$sources"/streamgauge/*.java ||
    fail "Streamgauge's part for Flink does not compile; is this JDK 17 or newer?"
jar --create --file "$place/pyflink/lib/streamgauge-flink.jar" -C "$classes" . || fail "the jar cannot be written"
echo "$stamp" >"$place/.ready"
echo "$place"
