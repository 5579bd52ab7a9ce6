#!/bin/sh
# Makes dist/environment.tar.gz: this library and what its jobs import, without Spark, for executors on other hosts.
set -eu
uv=.venv/bin/uv
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$uv" venv --quiet --relocatable --python .venv/bin/python "$place/environment"
"$uv" export --quiet --frozen --extra jobs --extra otel --no-default-groups --no-emit-project \
    --no-emit-package pyspark --no-emit-package py4j --output-file "$place/pins" >/dev/null
"$uv" pip install --quiet --python "$place/environment/bin/python" --no-deps --require-hashes -r "$place/pins"
"$uv" pip install --quiet --python "$place/environment/bin/python" --no-deps .
mkdir -p dist
tar --create --file - --directory "$place/environment" . | gzip -1 >dist/environment.tar.gz
echo "dist/environment.tar.gz: $(du -h dist/environment.tar.gz | cut -f1), for $(readlink -f .venv/bin/python)"
