#!/bin/sh
# Installs iproute2. Tests with network namespaces as hosts need it, and root; without them they are skipped.
command -v ip >/dev/null 2>&1 && command -v tc >/dev/null 2>&1 && exit 0
command -v apt-get >/dev/null 2>&1 || { echo "no apt-get here: install iproute2 for the tests on several hosts"; exit 0; }
run=""
[ "$(id -u)" = 0 ] || run="sudo -n"
echo "installing iproute2 for the tests on several hosts"
$run apt-get update -qq >/dev/null && $run apt-get install -y -qq iproute2 >/dev/null 2>&1 ||
    echo "could not install iproute2: the tests on several hosts will be skipped"
exit 0
