"""The states of a shard's consumer, and what follows on what.

States, after KCL's ``ConsumerStates`` (waiting for parent shards is the lease keeper's: it hands out
no shard whose parents are not done):

::

      ┌────────────────► INITIALIZING ──► PROCESSING ──► SHARD_ENDED ──┐
      │                       │  │           │ │ │           │ │       │
      │                  failed  └─────┬─────┘ │ └───┬───────┘ │ done  │
      │                       ▼        │ stop  │lost │         │       │
      └──── retry ───── BACKING_OFF ◄──┼───────┼─────┼─ failed ┘       │
                              │        ▼       ▼     ▼                 ▼
                              │   SHUTDOWN_REQUESTED ──► LEASE_LOST ──► COMPLETE
                              └─────── stop, lost ────────────────────►┘

*stop* stands for a handover too: both end in peace, and differ in what becomes of the lease.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final


class State(Enum):
    INITIALIZING = auto()
    PROCESSING = auto()
    SHARD_ENDED = auto()
    SHUTDOWN_REQUESTED = auto()
    LEASE_LOST = auto()
    BACKING_OFF = auto()
    COMPLETE = auto()


class Outcome(Enum):
    """How a state ended."""

    DONE = auto()
    FAILED = auto()
    END = auto()  # the shard's end was read
    STOP = auto()  # the daemon stops
    HAND_OVER = auto()  # the lease is to go to another worker, in peace
    LOST = auto()  # another worker has the lease


TRANSITIONS: Final = {
    (State.INITIALIZING, Outcome.DONE): State.PROCESSING,
    (State.INITIALIZING, Outcome.STOP): State.SHUTDOWN_REQUESTED,
    (State.INITIALIZING, Outcome.HAND_OVER): State.SHUTDOWN_REQUESTED,
    (State.INITIALIZING, Outcome.LOST): State.LEASE_LOST,
    (State.INITIALIZING, Outcome.FAILED): State.BACKING_OFF,
    (State.PROCESSING, Outcome.END): State.SHARD_ENDED,
    (State.PROCESSING, Outcome.STOP): State.SHUTDOWN_REQUESTED,
    (State.PROCESSING, Outcome.HAND_OVER): State.SHUTDOWN_REQUESTED,
    (State.PROCESSING, Outcome.LOST): State.LEASE_LOST,
    (State.PROCESSING, Outcome.FAILED): State.BACKING_OFF,
    (State.SHARD_ENDED, Outcome.DONE): State.COMPLETE,
    (State.SHARD_ENDED, Outcome.LOST): State.LEASE_LOST,
    (State.SHARD_ENDED, Outcome.FAILED): State.BACKING_OFF,
    (State.SHUTDOWN_REQUESTED, Outcome.DONE): State.LEASE_LOST,
    (State.SHUTDOWN_REQUESTED, Outcome.LOST): State.LEASE_LOST,
    (State.SHUTDOWN_REQUESTED, Outcome.FAILED): State.COMPLETE,
    (State.LEASE_LOST, Outcome.DONE): State.COMPLETE,
    (State.LEASE_LOST, Outcome.LOST): State.COMPLETE,
    (State.LEASE_LOST, Outcome.FAILED): State.COMPLETE,
    (State.BACKING_OFF, Outcome.DONE): State.INITIALIZING,
    (State.BACKING_OFF, Outcome.STOP): State.COMPLETE,
    (State.BACKING_OFF, Outcome.HAND_OVER): State.COMPLETE,
    (State.BACKING_OFF, Outcome.LOST): State.COMPLETE,
}
