"""Spark's settings on their way to spark-submit: secrets go by a file for its owner alone, as `ps` shows arguments."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from streamgauge.base import secrets, variables

DEFAULTS = "spark-defaults.conf"
#: names of settings whose values Spark leaves out of its event logs and pages, besides those that it knows by itself
REDACTED = {
    "spark.redaction.regex": "(?i)secret|passw|passphrase|passcode|token|credential|jaas|signature|[.]sas[.]|"
    "(access|account|api|private|encryption|signing|shared|auth|client)[._-]?key"
}
#: characters that java.util.Properties would take for its own
_SPECIAL = re.compile(r"[\\=:#!\s]")


def parted(conf: Mapping[str, str], where: str) -> tuple[dict[str, str], dict[str, str]]:
    """Settings that anybody may see, and secret ones; variables of the environment that they name are filled in.

    Raises UserError for a variable that is not set.
    """
    shown, hidden = dict[str, str](), dict[str, str]()
    masked = secrets.masked({"conf": conf})["conf"]
    for key, value in conf.items():
        is_secret = value != masked[key] or variables.named(value)
        (hidden if is_secret else shown)[key] = str(variables.filled(value, f"{where}.{key}"))
    secrets.learn({"conf": hidden})
    return shown, hidden


def written(hidden: Mapping[str, str], folder: Path, home: Path | None = None) -> Path:
    """Writes settings as a file for --properties-file into a folder, and before them those that it takes the place of.

    home: Spark's, if SPARK_CONF_DIR and SPARK_HOME do not tell it.
    """
    text = ""
    for place in (os.environ.get("SPARK_CONF_DIR"), home and home / "conf", f"{os.environ.get('SPARK_HOME')}/conf"):
        if place and (file := Path(place) / DEFAULTS).is_file():
            text = file.read_text(encoding="utf-8").rstrip("\n") + "\n"
            break
    text += "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in hidden.items())
    target = folder / "private.conf"
    target.unlink(missing_ok=True)
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file_handle:
        file_handle.write(text)
    return target


def _escaped(text: str) -> str:
    names = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
    return _SPECIAL.sub(lambda match: names.get(match[0], f"\\{match[0]}"), text)
