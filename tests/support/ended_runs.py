"""Lets a run of tests that gets SIGTERM end as with Ctrl-C: a hook of pytest for ``conftest.py``.

A test stands over a tree of processes: daemons, extractors, JVMs with their workers, servers. SIGTERM's own effect ends
pytest alone and leaves the tree behind. As an interrupt it ends the test under way, and all fixtures, which end theirs.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType


def pytest_sessionstart() -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one would end the fixtures' ends
    raise KeyboardInterrupt
