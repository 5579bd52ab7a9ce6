"""Runs a driver process whose settings come as one JSON argument: `python -m streamgauge.bench.driver '{"stream": …}'`.

People start one by `streamgauge driver`.
"""

import sys

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.process import Settings, run

try:
    run(Settings.model_validate_json(sys.argv[1]))
except UserError as problem:
    print(problem, file=sys.stderr)
    sys.exit(2)
