"""Options for the JVMs of Spark that tests start: each lives for seconds.

They get the classes that a driver loads out of an archive (``make peers``, ``tools/spark_classes.py``): half of a
start's processor time. Without the archive they start as ever.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from kainite_demo.services import SHORT_LIVED_JVM

ARCHIVE: Final = Path(sys.prefix) / "peers/spark.jsa"

LAUNCHER_OPTIONS: Final = SHORT_LIVED_JVM
"""For ``SPARK_LAUNCHER_OPTS``: of the JVM that puts a driver's command line together."""

DRIVER_OPTIONS: Final = f'{SHORT_LIVED_JVM} -XX:SharedArchiveFile="{ARCHIVE}" -Xlog:cds*=off'
"""For ``SPARK_SUBMIT_OPTS``."""
