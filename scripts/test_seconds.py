"""Writes the seconds of each test file to tests/seconds.json, so that the next run begins with the longest.

.venv/bin/pytest … --junit-xml a.xml; .venv/bin/pytest … --junit-xml b.xml; scripts/test_seconds.py a.xml b.xml
"""

import json
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
taken: Counter[str] = Counter()
for report in sys.argv[1:]:
    for case in ElementTree.parse(report).iter("testcase"):
        taken[case.attrib["classname"].replace(".", "/") + ".py"] += float(case.attrib["time"])
kept = {name: round(seconds) for name, seconds in taken.most_common() if seconds >= 1 and (ROOT / name).exists()}
(ROOT / "tests" / "seconds.json").write_text(json.dumps(kept, indent=1) + "\n")
for name, seconds in list(kept.items())[:10]:
    print(f"{seconds:5d} s  {name}")
