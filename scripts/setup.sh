#!/bin/sh
# setup.sh PYTHON UV_VERSION: builds .venv in four steps, and says which one runs and how far it is.
set -e
python=$1 uv=$2 began=$(date +%s)
step() { echo "setup $1 of 4, $(($(date +%s) - began)) s: $2"; }
installed() { set -- .venv/lib/python*/site-packages/*.dist-info; [ -e "$1" ] && echo $# || echo 0; }

step 1 "Python's environment, in .venv"
test -x .venv/bin/pip || "$python" -m venv .venv
step 2 "uv $uv, which installs the rest"
.venv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$uv"
packages=$(grep -c '^\[\[package\]\]' uv.lock)
step 3 "about $packages packages, which take 2.3 GB on disk"
# a terminal sees uv's own bars; elsewhere a line every 15 s says how many packages are there
if [ -t 2 ]; then
    UV_PROJECT_ENVIRONMENT=.venv .venv/bin/uv sync --frozen --inexact --all-extras --compile-bytecode
else
    (while sleep 15 >/dev/null 2>&1; do step 3 "$(installed) packages are there, which are then compiled"; done) &
    ticker=$!
    trap 'kill $ticker 2>/dev/null' EXIT
    UV_PROJECT_ENVIRONMENT=.venv .venv/bin/uv sync --quiet --frozen --inexact --all-extras --compile-bytecode
    kill $ticker 2>/dev/null
    trap - EXIT # a failed kill there would be this script's exit code
fi
step 4 "Spark's classes, laid out for a quicker start: about a minute"
scripts/class-archive.sh
echo "setup is done, in $(($(date +%s) - began)) s: .venv/bin/streamgauge"
