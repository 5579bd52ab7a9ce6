from __future__ import annotations

import os
import subprocess

from streamgauge.catalog.runs import environment


def test_the_environment_names_the_java_that_runs() -> None:
    home = os.environ.get("JAVA_HOME")
    said = subprocess.run([f"{home}/bin/java" if home else "java", "-version"], capture_output=True, text=True)
    software = environment()["software"]
    assert f'"{software["java"]}"' in said.stderr
    assert None not in software.values()
