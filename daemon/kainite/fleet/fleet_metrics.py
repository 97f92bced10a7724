"""What a worker tells its meter of the fleet, at each look: the whole fleet's figures, as it sees them.

Every worker tells the same, so the maximum over the workers is the fleet's. A worker that does not reach the table
tells that no worker is alive, and leaves the figures of duties as it saw them last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kainite.fleet.model.records import Duty, Picture
from kainite.fleet.model.states import DutyStatus
from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.observe.metric import Metric

_COMING: Final = (DutyStatus.UNASSIGNED, DutyStatus.WAITING)


def figures(picture: Picture) -> Mapping[Metric, int]:
    """Returns the gauges for what one read of the table shows."""
    duties = picture.duties.values()
    return {
        metric.FLEET_WORKERS: sum(worker.status.pings for worker in picture.workers.values()),
        metric.DUTIES_RUNNING: sum(duty.status is DutyStatus.RUNNING for duty in duties),
        metric.DUTIES_WAITING: sum(map(_comes, duties)),
        metric.DUTIES_IN_ERROR: sum(duty.status is DutyStatus.ERROR for duty in duties),
    }


def tell(meter: Meter, picture: Picture) -> None:
    """Sets the gauges to what one read of the table shows."""
    for gauge, value in figures(picture).items():
        meter.observe(gauge, value)


def tell_away(meter: Meter) -> None:
    """Tells that the table did not answer."""
    meter.observe(metric.FLEET_WORKERS, 0)


def _comes(duty: Duty) -> bool:
    """Returns whether a duty is to run and does not yet; one that an operator has stopped is not to run."""
    return duty.wanted and duty.status in _COMING
