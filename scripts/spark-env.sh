#!/bin/sh
# Makes .venvs/spark-VERSION: another Spark, and what a system's driver process imports, in the lock's versions.
version=$1
fail() { echo "streamgauge: $1" >&2; exit 1; }

case $version in
    *[!0-9.a-z]* | "") fail "SPARK: found '$version', allowed: a version of PySpark such as 4.2.1: make spark-env SPARK=4.2.1" ;;
esac
place=.venvs/spark-$version
test -e "$place/.ready" && { echo "$place"; exit 0; }
rm -rf "$place"
pins=$(mktemp) && trap 'rm -f "$pins"; test -e "$place/.ready" || rm -rf "$place"' EXIT
sed -n 's/ *\\$//; /^[A-Za-z0-9].*==/p' requirements.txt | grep -v '^pyspark' >"$pins"
mkdir -p .venvs
.venv/bin/uv venv --quiet --python .venv/bin/python "$place" || fail "$place cannot be made"
.venv/bin/uv pip install --quiet --python "$place/bin/python" --constraint "$pins" "pyspark==$version" \
    duckdb filelock numpy pandas protobuf psutil pyarrow pydantic pyyaml ||
    fail "pyspark $version cannot be installed; is it a version of PySpark, and is the package index reachable?"
touch "$place/.ready"
echo "$place"
