"""The fence: which apply job, and which of its micro-batches, may write to a target; and the errors of who may not."""

from __future__ import annotations

from dataclasses import dataclass

from kainite.base.errors import TargetFencedError, TargetUnavailableError


@dataclass(frozen=True, slots=True)
class Fence:
    """The identity of a writer: an apply job's generation and the number of its micro-batch."""

    log_partition: str
    generation: int
    micro_batch: int


def fence_lost(fence: Fence) -> TargetFencedError:
    """Returns the error of a transaction whose fence is not the target's any more."""
    return TargetFencedError(
        f"generation {fence.generation}, micro-batch {fence.micro_batch} of log partition {fence.log_partition!r} "
        "may not write to the target any more: a newer apply job or micro-batch took over"
    )


def outranked(log_partition: str, generation: int) -> TargetFencedError:
    """Returns the error of an apply job that meets a higher generation in the target."""
    return TargetFencedError(
        f"a newer apply job than generation {generation} owns log partition {log_partition!r} in the target: "
        "stop this one"
    )


def already_applied(fence: Fence) -> TargetUnavailableError:
    """Returns the error of a group of which another task acknowledged a unit meanwhile.

    The caller reads the acknowledgements again and applies the rest.
    """
    return TargetUnavailableError(
        f"units of log partition {fence.log_partition!r} were acknowledged by another task meanwhile: "
        "read the acknowledgements again"
    )
