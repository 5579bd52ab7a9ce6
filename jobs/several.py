"""spark-submit application: runs stages one after another, in one session. Its argument lists their jobs, as JSON."""

import argparse
import json
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", type=json.loads, help="[[job, argument, …], …]")
    for job, *arguments in parser.parse_args().jobs:
        file = str(Path(__file__).with_name(f"{job}.py"))
        sys.argv = [file, *arguments]
        runpy.run_path(file, run_name="__main__")
