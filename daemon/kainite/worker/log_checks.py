"""The checks on the log for ``/health``.

On its units in the process that owns it, on settings in another process, and on a worker that has another log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kainite.base.clock import epoch_ms

if TYPE_CHECKING:
    from kainite.leases.other_log import OtherLog
    from kainite.observe.check import Check
    from kainite.peers.sharing.shared_log import SharedLog
    from kainite.settings import LogSettings


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


def checks_of_other(other: OtherLog | None, settings: LogSettings) -> tuple[Check, ...]:
    """Returns the check that fails while another worker of the application collects into another log."""
    if other is None:
        return ()
    from kainite.verdict.other_logs import differing_log

    return (differing_log(other.worker, other.log, settings.collected),)


def _of_member(log: SharedLog) -> tuple[Check, ...]:
    owner = log.other_targets()
    if not owner:
        return ()
    from kainite.verdict.targets import differing_targets

    return (differing_targets(owner),)
