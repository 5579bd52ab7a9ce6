"""Writes the seconds of the test files that ran to tests/seconds.json, so that the next run begins with the longest.

Files that did not run keep theirs.

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
place = ROOT / "tests" / "seconds.json"
known = Counter(json.loads(place.read_text()) | taken).most_common()
kept = {name: round(seconds) for name, seconds in known if seconds >= 1 and (ROOT / name).exists()}
place.write_text(json.dumps(kept, indent=1) + "\n")
for name, seconds in list(kept.items())[:10]:
    print(f"{seconds:5d} s  {name}")
