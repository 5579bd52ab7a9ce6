#!/bin/sh
# Puts secrets where programs look for them, then becomes the command. Arguments are seen by everybody, this is not.
set -eu
give() { # a secret that is there and cannot be had must not leave a door open
    file="${SECRETS:-/run/secrets}/$2"
    [ -e "$file" ] || return 0
    [ -r "$file" ] && [ -s "$file" ] || { echo "streamgauge: $file: cannot be read, or is empty" >&2; exit 1; }
    export "$1=$(cat "$file")"
}
give STREAMGAUGE_TOKEN driver_token
give STREAMGAUGE_DATABASE results_database
give _SPARK_AUTH_SECRET spark_secret
if [ -n "${_SPARK_AUTH_SECRET:-}" ] && [ -n "${SPARK_CONF_DIR:-}" ]; then # a driver takes it from its settings alone
    settings=$(mktemp -d) # only its owner can enter it
    cp -R "$SPARK_CONF_DIR"/. "$settings"
    printf '\nspark.authenticate.secret %s\n' "$_SPARK_AUTH_SECRET" >> "$settings/spark-defaults.conf"
    export SPARK_CONF_DIR="$settings"
fi
exec "$@"
