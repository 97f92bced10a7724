"""The states of a shard's consumer, and the table of their transitions.

The states follow KCL's ``ConsumerStates`` (docs/kcl.md, *Multi-language protocol*). The state that waits for parent
shards is missing, because the lease keeper hands out no shard before its parents are done:

::

      ┌────────────────► INITIALIZING ──► PROCESSING ──► SHARD_ENDED ──┐
      │                       │  │           │ │ │           │ │       │
      │                  failed  └─────┬─────┘ │ └───┬───────┘ │ done  │
      │                       ▼        │ stop  │lost │         │       │
      └──── retry ───── BACKING_OFF ◄──┼───────┼─────┼─ failed ┘       │
                              │        ▼       ▼     ▼                 ▼
                              │   SHUTDOWN_REQUESTED ──► LEASE_LOST ──► COMPLETE
                              └─────── stop, lost ────────────────────►┘

*stop* stands for a handover too: the child ends in the same way, and only the lease goes elsewhere.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final


class ConsumerState(Enum):
    """The state of a consumer with its shard."""

    INITIALIZING = auto()
    PROCESSING = auto()
    SHARD_ENDED = auto()
    SHUTDOWN_REQUESTED = auto()
    LEASE_LOST = auto()
    BACKING_OFF = auto()
    COMPLETE = auto()


class StateOutcome(Enum):
    """The way in which a state ended."""

    DONE = auto()
    FAILED = auto()
    END = auto()  # the shard's end was read
    STOP = auto()  # the daemon stops
    HAND_OVER = auto()  # the lease is to go to another worker, after the child has checkpointed
    LOST = auto()  # another worker has the lease


TRANSITIONS: Final = {
    (ConsumerState.INITIALIZING, StateOutcome.DONE): ConsumerState.PROCESSING,
    (ConsumerState.INITIALIZING, StateOutcome.STOP): ConsumerState.SHUTDOWN_REQUESTED,
    (ConsumerState.INITIALIZING, StateOutcome.HAND_OVER): ConsumerState.SHUTDOWN_REQUESTED,
    (ConsumerState.INITIALIZING, StateOutcome.LOST): ConsumerState.LEASE_LOST,
    (ConsumerState.INITIALIZING, StateOutcome.FAILED): ConsumerState.BACKING_OFF,
    (ConsumerState.PROCESSING, StateOutcome.END): ConsumerState.SHARD_ENDED,
    (ConsumerState.PROCESSING, StateOutcome.STOP): ConsumerState.SHUTDOWN_REQUESTED,
    (ConsumerState.PROCESSING, StateOutcome.HAND_OVER): ConsumerState.SHUTDOWN_REQUESTED,
    (ConsumerState.PROCESSING, StateOutcome.LOST): ConsumerState.LEASE_LOST,
    (ConsumerState.PROCESSING, StateOutcome.FAILED): ConsumerState.BACKING_OFF,
    (ConsumerState.SHARD_ENDED, StateOutcome.DONE): ConsumerState.COMPLETE,
    (ConsumerState.SHARD_ENDED, StateOutcome.LOST): ConsumerState.LEASE_LOST,
    (ConsumerState.SHARD_ENDED, StateOutcome.FAILED): ConsumerState.BACKING_OFF,
    (ConsumerState.SHUTDOWN_REQUESTED, StateOutcome.DONE): ConsumerState.LEASE_LOST,
    (ConsumerState.SHUTDOWN_REQUESTED, StateOutcome.LOST): ConsumerState.LEASE_LOST,
    (ConsumerState.SHUTDOWN_REQUESTED, StateOutcome.FAILED): ConsumerState.COMPLETE,
    (ConsumerState.LEASE_LOST, StateOutcome.DONE): ConsumerState.COMPLETE,
    (ConsumerState.LEASE_LOST, StateOutcome.LOST): ConsumerState.COMPLETE,
    (ConsumerState.LEASE_LOST, StateOutcome.FAILED): ConsumerState.COMPLETE,
    (ConsumerState.BACKING_OFF, StateOutcome.DONE): ConsumerState.INITIALIZING,
    (ConsumerState.BACKING_OFF, StateOutcome.STOP): ConsumerState.COMPLETE,
    (ConsumerState.BACKING_OFF, StateOutcome.HAND_OVER): ConsumerState.COMPLETE,
    (ConsumerState.BACKING_OFF, StateOutcome.LOST): ConsumerState.COMPLETE,
}
