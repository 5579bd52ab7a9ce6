#!/bin/sh
# Makes or upgrades what Airflow's services need: tables, pool, first administrator. May run again at any time.
set -eu
python -m streamgauge.app.airflow.commands "db migrate" \
    "pools set streamgauge ${STREAMGAUGE_SLOTS:-2} 'Spark jobs; a measurement takes every slot'"
"$(dirname "$0")/add-user.sh" admin Admin "${SECRETS:-/run/secrets}/admin_password"
