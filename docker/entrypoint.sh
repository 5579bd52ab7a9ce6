#!/bin/sh
# Puts secrets where programs look for them, then becomes the command. Arguments are seen by everybody, this is not.
set -eu
give() { [ ! -r "${SECRETS:-/run/secrets}/$2" ] || export "$1=$(cat "${SECRETS:-/run/secrets}/$2")"; }
give STREAMGAUGE_TOKEN driver_token
give STREAMGAUGE_DATABASE results_database
give _SPARK_AUTH_SECRET spark_secret
exec "$@"
