"""spark-submit application: runs stages one after another, in one session. Its argument lists their jobs, as JSON."""

import json
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    for job, *arguments in json.loads(sys.argv[1]):
        file = str(Path(__file__).with_name(f"{job}.py"))
        sys.argv = [file, *arguments]
        runpy.run_path(file, run_name="__main__")
