"""The keys over which a log partition's slots are spread: where a slot stands, and how the tail is found. Pure.

DynamoDB takes 1,000 write units a second for one partition key. A log partition therefore may be spread over several
keys, its *stripes*. It begins in one key, the *spine*. A mount may put a *fork* there once: the spine's last slot,
behind which the log goes on in stripes::

    spine      batch 0 ── batch 7 ── fork at 12 (3 stripes)
    stripe 0                         batch 12 ── batch 2,900 …       the place of a slot is a function of its first id:
    stripe 1                         batch 1,040 …                   the spine below the fork, else the stripe
    stripe 2                         batch 2,100 …                   (first id // block) mod stripes

States of a partition:

=============  ==================================================  =================================================
state          the tail                                            left by
=============  ==================================================  =================================================
whole          the spine's last slot                               a fork over the owner's own fence, put by a mount
forked         the fork: no stripe has a slot                      a fence in a stripe, put by a mount
striped        of the last slots of all stripes, that with the     never: a partition is forked once, for good
               highest first id
=============  ==================================================  =================================================

Invariants, beside those of :mod:`kainite.log.contract`:

* S1  A first id has one place, and every writer computes the same. Two owners that contend for it meet in the condition
  of one item, so the fence protects a striped log as it protects a whole one.
* S2  A fork replaces a fence of the writer's own generation and is never replaced. So nothing is ever put in the spine
  at the fork's id, nor behind it: a put of a former owner that is still under way meets the fork. Only an owner
  that has mounted behind the fork puts into a stripe: a put of a lower generation than the fork's is not even sent.
* S3  The last slot of each key is never deleted. The keys are read one after another; meanwhile an owner may append
  and truncate. No key's last slot ever falls back, so the highest of them is at least the tail at the beginning. It is
  a slot, so it was the tail at some moment since. What was put after that moment is met by the fence, and the tail is
  looked for again. (The fence's place cannot have been truncated: an owner deletes below a low-water mark alone that
  HEAD had before the claim.)
* S4  One put is in flight, so the slots become durable in the order of their ids: what stands behind a place where
  nothing stands tells that the place was read too early, or is truncated, or that the log is broken.

What a crash leaves behind:

=====================================  =====================================================================
crash                                  leaves
=====================================  =====================================================================
between the fence and the fork         a whole partition with a fence; the next mount fences over it
between the fork and the next fence    a forked partition; the next mount, of whatever setting, fences in a stripe
a fork that is under way, and its      the fork lands while its fence stands, and is then found; or it meets the next
owner is gone                          mount's fence, and lands nowhere
between the chunks of a large batch    chunks without a slot, deleted with the ids around them
in the midst of a truncation           slots below the low-water mark, which readers ignore; deleted by the next one
=====================================  =====================================================================

A search through all interleavings of a small model is in the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kainite.log.contract import Fork, Slot


def stripe_of(first_id: int, fork: Fork) -> int:
    """Returns the stripe of the slot that begins at ``first_id``, behind a fork."""
    return first_id // fork.block % fork.stripes


def place(first_id: int, fork: Fork | None) -> int | None:
    """Returns the stripe of the slot that begins at ``first_id``; None for the spine."""
    return None if fork is None or first_id < fork.at else stripe_of(first_id, fork)


def passes(first_id: int, generation: int, fork: Slot | None) -> bool:
    """Returns whether a slot at ``first_id`` would bypass the fork, because its writer has mounted before the fork."""
    return fork is not None and first_id >= fork.first_id and generation < fork.generation


def tail_of(last: Callable[[int | None], Slot | None]) -> Slot | None:
    """Returns a partition's last slot, with the partition's fork if it has one.

    Args:
        last: returns the last slot of a stripe, or of the spine (None), strongly consistent.
    """
    spine = last(None)
    if spine is None or spine.fork is None:
        return spine
    found = [slot for stripe in range(spine.fork.stripes) if (slot := last(stripe)) is not None]
    return replace(max(found, key=lambda slot: slot.first_id, default=spine), fork=spine.fork)
