#!/bin/sh
# add-user.sh NAME ROLE PASSWORD_FILE: a user of Airflow; roles: Viewer, User, Op, Admin. One that exists stays as it is.
set -eu
# asked twice for the password; without a terminal it reads standard input, so no process list shows it
{ cat "$3" && echo && cat "$3" && echo; } | setsid --wait airflow users create \
    --username "$1" --role "$2" --email "$1@localhost" --firstname "$1" --lastname "$2"
