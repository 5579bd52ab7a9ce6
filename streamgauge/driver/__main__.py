"""Runs the driver as `python -m streamgauge.driver`."""

import sys

from streamgauge.driver.process import main

sys.exit(main())
