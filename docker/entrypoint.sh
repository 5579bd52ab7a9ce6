#!/bin/sh
# Puts secrets where programs look for them, then becomes the command. Arguments are seen by everybody, this is not.
set -eu
give() { [ ! -r "${SECRETS:-/run/secrets}/$2" ] || export "$1=$(cat "${SECRETS:-/run/secrets}/$2")"; }
give STREAMGAUGE_TOKEN driver_token
give STREAMGAUGE_DATABASE results_database
give _SPARK_AUTH_SECRET spark_secret
if [ -n "${_SPARK_AUTH_SECRET:-}" ] && [ -n "${SPARK_CONF_DIR:-}" ]; then # a driver takes it from its settings alone
    settings=$(mktemp -d) # for nobody else's eyes
    cp "$SPARK_CONF_DIR"/* "$settings"
    umask 077
    printf '\nspark.authenticate.secret %s\n' "$_SPARK_AUTH_SECRET" >> "$settings/spark-defaults.conf"
    umask 022
    export SPARK_CONF_DIR="$settings"
fi
exec "$@"
