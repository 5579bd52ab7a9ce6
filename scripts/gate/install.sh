#!/bin/sh
# install.sh: makes an environment with Streamgauge, and puts its command on the path of the steps that follow.
# WHEEL: a wheel file; without one, the checkout that holds this script. EXTRAS, PYTHON: as in action.yml.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
case ${WHEEL:-} in
    '') source=$here ;;
    *) source=$(cd "$(dirname "$WHEEL")" && pwd)/$(basename "$WHEEL") ;;
esac
place=$RUNNER_TEMP/streamgauge
"${PYTHON:-python3}" -m venv "$place"
"$place/bin/pip" install --quiet --disable-pip-version-check "$source${EXTRAS:+[$EXTRAS]}" # a URL has no spaces
echo "$place/bin" >> "$GITHUB_PATH"
