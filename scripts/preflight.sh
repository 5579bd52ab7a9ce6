#!/bin/sh
# Checks Python, Java and disk space before anything starts; fails with one clear line.
# With `test` as second argument also what the tests need beyond: a compiler of Java, and a way to download Kafka.
python=$1
fail() { echo "streamgauge: $1" >&2; exit 1; }

"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null ||
    fail "Python: found $("$python" --version 2>&1), allowed: 3.11 to 3.13; set PYTHON=/path/to/python3.11"
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    fail "Python: $python has no venv module; install it (Debian: python3-venv)"
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
command -v "$java" >/dev/null 2>&1 || fail "Java: found none, allowed: 17 or newer; install a JDK or set JAVA_HOME"
version=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1)
[ "${version:-0}" -ge 17 ] || fail "Java: found ${version:-an unknown version}, allowed: 17 or newer; set JAVA_HOME"
free=$(df -Pk . | awk 'NR == 2 {print int($4 / 1024)}')
[ "$free" -ge 3000 ] || fail "disk: $free MiB free here, 3000 MiB needed; free some space"
test "$2" = test || exit 0
command -v javac >/dev/null 2>&1 ||
    fail "JDK: found no javac on PATH, allowed: a JDK, 17 or newer, not a JRE alone (Debian: openjdk-17-jdk-headless)"
javac=$(javac -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p')
[ "${javac:-0}" -ge 17 ] || fail "JDK: found javac ${javac:-of an unknown version}, allowed: 17 or newer"
command -v mvn >/dev/null 2>&1 || command -v curl >/dev/null 2>&1 ||
    fail "download of Kafka: found neither mvn nor curl on PATH, allowed: one of them (Debian: curl)"
