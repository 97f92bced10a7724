"""The checks on the log for ``/health``: on its units in the process that owns it, on settings in another process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kainite.base.clock import epoch_ms

if TYPE_CHECKING:
    from kainite.observe.check import Check
    from kainite.peers.sharing.shared_log import SharedLog


def checks_of(log: SharedLog | None, unit_timeout: float) -> tuple[Check, ...]:
    """Returns the checks; in a process that does not own the log, and knows no unit, only whether targets agree.

    Args:
        log: the log, once the process takes part in it.
        unit_timeout: seconds after which a unit that is not complete has waited long.
    """
    if log is None:
        return ()
    if log.owner is None:
        return _of_member(log)
    from kainite.verdict.units import unit_checks  # a daemon without a log starts without these modules

    return unit_checks(log.owner.summary(), epoch_ms(), unit_timeout)


def _of_member(log: SharedLog) -> tuple[Check, ...]:
    owner = log.other_targets()
    if not owner:
        return ()
    from kainite.verdict.targets import differing_targets

    return (differing_targets(owner),)
