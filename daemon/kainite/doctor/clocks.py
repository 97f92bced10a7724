"""Compares this host's clock with others. Pure, but for the look at this host's clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from kainite.doctor.finding import DoctorFinding, warned, well, wrong

T = TypeVar("T")

AWS_REFUSES_S: Final = 300.0
"""AWS refuses requests whose signature is so much older or younger than its own clock."""

NOTED_S: Final = 2.0
"""A Date header has whole seconds; less than this says nothing."""

_REMEDY: Final = "synchronize it: timedatectl set-ntp true, or chrony"


def timed(ask: Callable[[], T]) -> tuple[T, float]:
    """Returns an answer, and the time (epoch seconds) halfway between question and answer."""
    before = time.time()
    answer = ask()
    return answer, (before + time.time()) / 2


def clock_finding(whose: str, theirs: float, ours: float, refuses: float | None = None) -> DoctorFinding:
    """Returns how a clock differs from this host's.

    Args:
        whose: its owner, such as ``Kinesis``.
        theirs, ours: epoch seconds.
        refuses: seconds of difference from which its owner refuses requests; None where it never does.
    """
    off = ours - theirs
    if abs(off) < NOTED_S:
        return well("clocks", f"this host and {whose} agree to {NOTED_S:g} s")
    what = f"this host is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} {whose}"
    if refuses is not None and abs(off) >= refuses:
        return wrong("clocks", f"{what}, which refuses such requests", _REMEDY)
    return warned("clocks", f"{what}: lags and ages are off by so much", _REMEDY)
