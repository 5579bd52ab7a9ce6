#!/bin/sh
# Writes a random secret into each file that is not there yet: docker/make-secrets.sh [FOLDER]
# DATABASE: host[:port] of PostgreSQL. SPARK_MASTER: for Airflow's connection.
set -eu
folder=${1:-$(dirname "$0")/secrets}
database=${DATABASE:-postgres}
master=${SPARK_MASTER:-spark://spark:7077}
mkdir -p "$folder"
chmod 700 "$folder" # others of the host stop here; a container sees single files, so these can be read
umask 022

put() { # a file takes its name when it is whole: an empty secret would protect nothing
    [ ! -s "$folder/$1" ] || return 0
    [ -n "$2" ] || { echo "no secret could be made for $1" >&2; exit 1; }
    printf %s "$2" > "$folder/.$1"
    mv "$folder/.$1" "$folder/$1"
}
random() { head -c 24 /dev/urandom | base64 | tr '+/' '-_'; }

for name in postgres_password airflow_password results_password grafana_reader_password grafana_password \
    admin_password jwt_secret api_secret_key driver_token spark_secret; do
    put "$name" "$(random)"
done
put fernet_key "$(head -c 32 /dev/urandom | base64 | tr '+/' '-_')"
put airflow_database "postgresql+psycopg://airflow:$(cat "$folder/airflow_password")@$database/airflow"
put results_database "postgresql://results:$(cat "$folder/results_password")@$database/results"
put connections.yaml "streamgauge_spark: {conn_type: spark, host: '$master'}"
