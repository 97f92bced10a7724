"""Keys of Kainite's own that are constants now, since nobody could set them well.

A file that still sets one is answered with one line, at the start and by ``kainite run --check``. The line is a
warning, and a problem where the daemon would do something else than the file says. The constant itself, with the reason
for its value, is a field without a key in its section.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kainite.settings.keys.table import DEFAULTS
from kainite.settings.kinds.values import millis


@dataclass(frozen=True, slots=True)
class RetiredKey:
    """A key that is a constant now.

    Attributes:
        name: the key as it was written.
        section, field: the field that has the constant; empty where the value follows from another key.
        show: converts the constant to the text that was written for the key.
        follows: says which other key the value follows from, and how.
        refused: a file with this key would mean something else now, so nothing starts with it.
    """

    name: str
    section: str = ""
    field: str = ""
    show: Callable[[Any], str] = str
    follows: str = ""
    refused: bool = False

    @property
    def value(self) -> str:
        """Returns the constant, or what it follows from, in words."""
        return self.follows or self.show(DEFAULTS[self.section, self.field])

    def __str__(self) -> str:
        return f"{self.name} is a constant now ({self.value}); remove it"


_millis = millis(0).show

RETIRED_KEYS: tuple[RetiredKey, ...] = (
    RetiredKey("awsConnectTimeoutMillis", "aws", "connect_timeout", _millis),
    RetiredKey("awsMaxAttempts", "aws", "tries"),
    RetiredKey("prefetchBatches", "stream", "prefetch_batches"),
    RetiredKey("prefetchRecords", "stream", "prefetch_records"),
    RetiredKey("childRestartBackoffMaxMillis", follows="30000, or taskBackoffTimeMillis where that is longer"),
    RetiredKey("logHeartbeatMillis", follows="0.3 of logLeaseMillis"),
    RetiredKey("logPutIntervalMillis", "log", "put_interval", _millis),
    RetiredKey("logBatchBytes", "log", "batch_bytes"),
    RetiredKey("logQueueBytes", "log", "queue_bytes"),
    RetiredKey("emitBytes", "log", "emit_bytes"),
    RetiredKey("logPollMillis", follows="a fortieth of logLeaseMillis, at most 1000"),
    RetiredKey("logSnapshotEntries", "log", "snapshot_entries"),
    # A source that sends a unit again later than this would have it applied twice, which the file was to prevent.
    RetiredKey("uowDedupWindow", "uow", "dedup_window", refused=True),
    RetiredKey("applyMaxUnits", "apply", "max_units"),
    RetiredKey("applyGroupUnits", "apply", "group_units"),
    RetiredKey("applyGroupBytes", "apply", "group_bytes"),
    RetiredKey("applyIdleMillis", "apply", "idle", _millis),
    RetiredKey("applyPaceMillis", "apply", "pace", _millis),
    RetiredKey("applyFeed", follows="true"),
    RetiredKey("applyFeedBytes", "apply", "feed_bytes"),
    # A loader that reads other markers than it is sent waits for ever.
    RetiredKey("loaderMarkerEom", follows="that of markerEom", refused=True),
    RetiredKey("loaderMarkerEop", follows="that of markerEop", refused=True),
    RetiredKey("loaderMarkerEob", follows="that of markerEob", refused=True),
    RetiredKey("loaderMarkerBnc", follows="that of markerBnc", refused=True),
    RetiredKey("extractorHoldBytes", "extract", "hold_bytes"),
    RetiredKey("extractorAheadBytes", "extract", "ahead_bytes"),
    RetiredKey("extractAggregationBytes", "extract", "aggregation_bytes"),
    RetiredKey("fleetPingMillis", follows="half of fleetPingTimeoutMillis"),
    RetiredKey("fleetRebalanceMillis", "fleet", "rebalance", _millis),
)

RETIRED: Mapping[str, RetiredKey] = {key.name: key for key in RETIRED_KEYS}


def retired(names: Collection[str], *, refused: bool) -> Iterator[str]:
    """Yields a line for each of these keys that is a constant now; those that are refused, or the others."""
    return (str(key) for key in RETIRED_KEYS if key.name in names and key.refused is refused)
