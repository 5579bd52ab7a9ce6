"""Runs several of Airflow's commands in one process, as each start of Airflow takes seconds.

    python -m streamgauge.app.airflow.commands "db migrate" "pools set streamgauge 2 'Spark jobs'"

Ends with the first command that fails.
"""

from __future__ import annotations

import shlex
import sys

from airflow.cli.cli_parser import get_parser
from airflow.configuration import write_default_airflow_configuration_if_needed


def main(commands: list[str]) -> None:
    write_default_airflow_configuration_if_needed()  # else each service would invent secrets of its own
    parser = get_parser()
    for command in commands:
        arguments = parser.parse_args(shlex.split(command))
        arguments.func(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
