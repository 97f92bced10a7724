from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from kainite.worker.garbage import THRESHOLDS, collect_rarely
collect_rarely()
assert gc.get_threshold() == THRESHOLDS
assert gc.get_freeze_count() > 1_000
assert gc.isenabled()
"""


def test_what_is_imported_is_not_looked_at_again() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
