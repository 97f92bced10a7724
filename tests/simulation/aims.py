"""Aims: each turns a seed's plan towards one rare course of events. Their order says which seeds have them in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from simulation.aims_apply import (
    atomic_commit,
    child_leaves,
    frozen_task,
    locked,
    locked_prefix,
    new_key,
    new_table,
    one_batch,
    target_away,
    target_set_back,
    two_targets,
)
from simulation.aims_leases import lease_requests
from simulation.aims_links import bad_links, cut_off_for_good, no_database, refused_for_good, slow_reports, small_budget
from simulation.aims_loads import given_up, loads
from simulation.aims_owner import (
    held_put,
    in_items,
    lapse,
    late_put,
    long_history,
    programs,
    rivals,
    snapshots,
    striped,
    thousands,
)
from simulation.aims_stream import (
    added_stream,
    aggregates,
    begins_at_latest,
    bursts,
    first_leases,
    late_records,
    odd_units,
    retention,
    short_memory,
    slow_source,
    two_streams,
    unread,
    watermark,
)

AIMS: Final[Mapping[str, Callable[[Any, Random], Any]]] = {
    "frozen task": frozen_task,
    "lease lapses during a put": lapse,
    "owner frozen before a put": late_put,
    "owner's put on its way": held_put,
    "copies": bursts,
    "source pauses": slow_source,
    "shard unread": unread,
    "locked rows": locked,
    "locked rows, prefix": locked_prefix,
    "new key": new_key,
    "new table": new_table,
    "snapshots in parts": snapshots,
    "one worker id twice": rivals,
    "watermark": watermark,
    "child leaves its parent": child_leaves,
    "late records": late_records,
    "target away": target_away,
    "one micro-batch": one_batch,
    "bad links": bad_links,
    "cut off for good": cut_off_for_good,
    "refused for good": refused_for_good,
    "no database": no_database,
    "slow reports": slow_reports,
    "small budget": small_budget,
    "short memory": short_memory,
    "log in stripes": striped,
    "log in items": in_items,
    "aggregates": aggregates,
    "retention": retention,
    "long": long_history,
    "odd units": odd_units,
    "programs": programs,
    "begins at latest": begins_at_latest,
    "target set back": target_set_back,
    "thousands": thousands,
    "first leases": first_leases,
    "lease requests": lease_requests,
    "loads": loads,
    "tables given up": given_up,
    "two streams": two_streams,
    "two targets": two_targets,
    "added stream": added_stream,
    "atomic commit": atomic_commit,
}
