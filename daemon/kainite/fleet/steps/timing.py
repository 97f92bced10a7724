"""The times of the fleet, and the limits that follow from them.

A worker that has not pinged for :attr:`Timing.lease` stops all of its programs; the leader takes its duties away after
:attr:`Timing.silence`, which is longer. Both count from the same ping: the worker from before it was sent, the leader
from after it was seen. So no clocks are compared, and a duty starts elsewhere only after it has ended here, unless a
host's clock runs a tenth faster than another's, or the kernel does not let the program's guard run.
"""

from __future__ import annotations

from dataclasses import dataclass

LEASE_PART = 0.9


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of the fleet, all in seconds.

    Attributes:
        ping: the leader renews its lead and every worker looks so often; workers ping every second time.
        timeout: a leader that was silent for so long may be replaced.
        rebalance: between two rebalancings.
        message_life: a message that nobody has obeyed for so long expires.
        forget: the record of an unloaded worker is kept for so long.
    """

    ping: float = 3.0
    timeout: float = 6.0
    rebalance: float = 3_600.0
    message_life: float = 120.0
    forget: float = 3_600.0

    @property
    def worker_ping(self) -> float:
        """Returns the seconds between two pings of a worker that does not lead."""
        return 2 * self.ping

    @property
    def settle(self) -> float:
        """Returns the seconds for which a leader that has just entered the fleet gives no duties out.

        Hosts that are started together so share the duties, where else the first one of them had them all.
        """
        return self.worker_ping

    @property
    def brisk(self) -> float:
        """Returns the seconds between two looks of a worker that expects something."""
        return self.ping / 6

    @property
    def silence(self) -> float:
        """Returns the seconds after which a silent worker is dead to the leader."""
        return 2 * self.timeout

    @property
    def lease(self) -> float:
        """Returns the seconds after its last ping for which a worker may run its duties' programs."""
        return LEASE_PART * self.silence
