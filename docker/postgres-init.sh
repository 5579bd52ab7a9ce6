#!/bin/bash
# Two databases, each with an owner of its own that can do nothing else, and a reader for Grafana.
set -eu
sql() { psql --quiet --set=ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" "$@"; }
secret() { cat "${SECRETS:-/run/secrets}/$1"; }

for owner in airflow results; do
    password=$(secret "${owner}_password") # alone on its line, or a secret that is missing would be an empty one
    export owner password
    sql <<'SQL'
\getenv owner owner
\getenv password password
CREATE ROLE :"owner" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE DATABASE :"owner" OWNER :"owner";
REVOKE ALL ON DATABASE :"owner" FROM PUBLIC;
SQL
done
password=$(secret grafana_reader_password)
sql --dbname results <<'SQL'
\getenv password password
CREATE ROLE grafana LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'password';
GRANT CONNECT ON DATABASE results TO grafana;
GRANT USAGE ON SCHEMA public TO grafana;
ALTER DEFAULT PRIVILEGES FOR ROLE results IN SCHEMA public GRANT SELECT ON TABLES TO grafana;
SQL
