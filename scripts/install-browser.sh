#!/bin/sh
# Installs the browser in which tests look at the page. Without one they are skipped (in CI they fail).
if { command -v chromium || command -v google-chrome; } >/dev/null 2>&1 && command -v chromedriver >/dev/null 2>&1; then
    exit 0
fi
command -v apt-get >/dev/null 2>&1 || { echo "no apt-get here: install Chromium and chromedriver to test the page"; exit 0; }
run=""
[ "$(id -u)" = 0 ] || run="sudo -n"
echo "installing Chromium for the page's tests"
$run apt-get update -qq >/dev/null && $run apt-get install -y -qq chromium chromium-driver >/dev/null 2>&1 ||
    echo "could not install Chromium: the page's tests will be skipped"
exit 0
