"""Sets how often Python looks for garbage that refers to itself, in a process that makes millions of short objects.

The collector runs when 700 more objects were made than freed, and each tenth time looks at older objects too. A reply
of 10,000 records, or a line of 1,000 deltas, is thousands of objects at once, none of which is such garbage; and the
units in progress are hundreds of thousands that stay. To collect each 20,000 objects, and to leave out what was
imported, saves a quarter of the time from emitted lines to fragments that are kept (25 µs a delta instead of 33, on a
busy machine), and keeps a few MB of garbage longer.
"""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (20_000, 10, 10)
"""Objects made and not freed until the youngest are looked at; rounds until older ones, and all, are."""


def collect_rarely() -> None:
    """Makes the collector run rarely, and never look at what exists now. To be called after the imports."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
