"""A snapshot of what one shard's consumer does, for the health endpoint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """A snapshot; times are seconds before it was taken.

    Attributes:
        shard: the shard's id.
        state: the consumer's state, such as ``PROCESSING`` or ``BACKING_OFF``.
        pid: the child's process id; None without a child.
        action: what the child was asked and has not answered yet; None when it is not its turn.
        silent: for how long it has not said anything since then; None when it is not its turn.
        behind_ms: how far the shard is behind, milliseconds; None before the first reply.
        last_record: since the last batch with records was done; None before the first one.
        failures: children that failed in a row.
    """

    shard: str
    state: str
    pid: int | None = None
    action: str | None = None
    silent: float | None = None
    behind_ms: int | None = None
    last_record: float | None = None
    failures: int = 0
