"""A snapshot of what one shard's consumer does, for the health endpoint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Standstill:
    """A shard's work that does not get on, for another reason than its child's silence.

    Attributes:
        seconds: for how long.
        cause: what the shard waits for.
    """

    seconds: float
    cause: str


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """A snapshot; times are seconds before it was taken.

    Attributes:
        shard: the shard's id.
        state: the consumer's state, such as ``PROCESSING`` or ``BACKING_OFF``.
        pid: the child's process id; None without a child.
        action: the action that the child was asked for and has not answered yet; None when it is not the child's turn.
        silent: seconds since the child was asked or last wrote; None when it is not the child's turn.
        behind_ms: how far the shard is behind, milliseconds; None before the first reply.
        last_record: seconds since the last batch with records was done; None before the first one.
        failures: children that failed in a row.
        stderr: the last line of standard error of the child, or of the one that failed before it; empty without one.
        stderr_lines: the last lines of that, the oldest first.
        records: how many records were done since the consumer's start.
        standstill: for how long the shard has not got on while its child is not asked; None while it gets on.
        throttled: seconds for which Kinesis has throttled its reading again and again; None while it does not.
    """

    shard: str
    state: str
    pid: int | None = None
    action: str | None = None
    silent: float | None = None
    behind_ms: int | None = None
    last_record: float | None = None
    failures: int = 0
    stderr: str = ""
    stderr_lines: tuple[str, ...] = ()
    records: int = 0
    standstill: Standstill | None = None
    throttled: float | None = None
