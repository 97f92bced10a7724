"""The operations, each with what it is about; what they lead to."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from kainite.base.checkpoint import Checkpoint
from kainite.fleet.model.records import Command, Work
from kainite.log.format.entry import OperationResult
from kainite.log.state.unit_filter import UnitFilter


@dataclass(frozen=True, slots=True)
class RetryUnits:
    """Applies failed units again.

    Attributes:
        names: names or transaction ids of units, in the order in which they are asked for; empty: the filter's.
        wanted: selects among the failed units where no names are given.
        target: the one of several targets in which the named units are applied again; empty: all where they failed.
    """

    names: tuple[str, ...] = ()
    wanted: UnitFilter = field(default_factory=UnitFilter)
    target: str = ""


@dataclass(frozen=True, slots=True)
class DiscardUnits:
    """Gives units up for good.

    Attributes:
        names: as of :class:`RetryUnits`; units that are in progress or blocked may be named too.
        wanted: selects among the failed units where no names are given.
        expected: the number that the person has confirmed: where the filter selects more by then, nothing is done.
            None: any number.
        target: the one of several targets in which the named units are given up, and failed; empty: all that lack them.
    """

    names: tuple[str, ...] = ()
    wanted: UnitFilter = field(default_factory=UnitFilter)
    expected: int | None = None
    target: str = ""


@dataclass(frozen=True, slots=True)
class CorrectUnit:
    """Sends a correction of a failed unit, which replaces it.

    Attributes:
        unit: the failed unit's name or transaction id.
        name: the correction's name, which no unit has had.
        deltas: the correction's deltas as a JSON array, each as a record processor emits it; a unit's name in them
            counts for nothing. At most :data:`MOST_CORRECTION` bytes.
    """

    unit: str
    name: str
    deltas: str


@dataclass(frozen=True, slots=True)
class RepairRows:
    """Writes rows as the source has them, as a unit of the log (``kainite verify --repair``).

    Attributes:
        name: the unit's name, which no unit has had.
        since: the transaction id of the first unit behind the point as of which the rows were read.
        rows: how many rows.
        deltas: the deltas, as :func:`kainite.owner.repairing.packed` makes them; at most :data:`MOST_CORRECTION` bytes.
    """

    name: str
    since: int
    rows: int
    deltas: str


@dataclass(frozen=True, slots=True)
class SkipNumbers:
    """Gives up the numbers that are awaited, up to ``last`` (``uowOrder=dense``)."""

    last: int


@dataclass(frozen=True, slots=True)
class PauseApply:
    """Applies no unit until :class:`ResumeApply`, whatever is restarted meanwhile."""


@dataclass(frozen=True, slots=True)
class ResumeApply:
    """Lets the apply job go on."""


@dataclass(frozen=True, slots=True)
class HandOverLog:
    """Lets another process own the log."""


@dataclass(frozen=True, slots=True)
class AddDuty:
    """Adds a duty to the fleet, which starts it somewhere at once."""

    duty: str
    work: Work


@dataclass(frozen=True, slots=True)
class RemoveDuty:
    """Removes a duty that does not run, and that the settings do not declare."""

    duty: str


class DutyChange(StrEnum):
    """What is done to a duty."""

    START = "start"
    STOP = "stop"
    ENABLE = "enable"
    DISABLE = "disable"
    KILL = "kill"
    CLEAR_ERROR = "clear the error of"


@dataclass(frozen=True, slots=True)
class ChangeDuty:
    """Starts, stops, enables or disables a duty of the fleet, kills its program, or clears its error."""

    duty: str
    change: DutyChange


@dataclass(frozen=True, slots=True)
class MoveDuty:
    """Stops a duty where it is, and starts it at a worker."""

    duty: str
    worker: str


@dataclass(frozen=True, slots=True)
class SetDormancy:
    """Gives a worker's duties to others and no new ones to it; or lets it take duties again."""

    worker: str
    dormant: bool


@dataclass(frozen=True, slots=True)
class ShutDownWorker:
    """Ends a worker of the fleet gracefully: its duties and its shards go to others."""

    worker: str


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Asks the fleet's leader to even the load."""


@dataclass(frozen=True, slots=True)
class ResetCheckpoints:
    """Sets checkpoints, so that shards are read from another position on.

    Attributes:
        to: the position, or a time in epoch seconds from which on records are delivered again.
        shards: the shards; empty: all.
        force: take the leases from workers that hold them.
    """

    to: Checkpoint | float
    shards: tuple[str, ...] = ()
    force: bool = False


@dataclass(frozen=True, slots=True)
class RestartChild:
    """Ends the child of a shard as a crash does, and starts another one at once."""

    shard: str


@dataclass(frozen=True, slots=True)
class MoveLease:
    """Gives the lease of a shard to a worker, where it stays until it is moved again or that worker goes."""

    shard: str
    worker: str


@dataclass(frozen=True, slots=True)
class ForgetStream:
    """Deletes the leases of a stream that the settings name no more, and has the log await it no more.

    Attributes:
        stream: its name, or its identifier ``account:stream:creationEpoch``.
    """

    stream: str


UnitOperation: TypeAlias = RetryUnits | DiscardUnits
MOST_CORRECTION = 300_000
"""The most bytes of a correction's deltas: a request is an item of the log's table, which takes 400 KB."""

OwnersOperation: TypeAlias = CorrectUnit | RepairRows | SkipNumbers | PauseApply | ResumeApply | HandOverLog
FleetOperation: TypeAlias = AddDuty | RemoveDuty | ChangeDuty | MoveDuty | SetDormancy | ShutDownWorker | Rebalance
LeaseOperation: TypeAlias = RestartChild | MoveLease
AnyOperation: TypeAlias = (
    UnitOperation | OwnersOperation | FleetOperation | LeaseOperation | ResetCheckpoints | ForgetStream
)

DORMANCY = {True: Command.DISABLE, False: Command.ENABLE}


@dataclass(frozen=True, slots=True)
class Preview:
    """What an operation would do now, for the person who confirms it.

    Attributes:
        does: what it does to the data, in words.
        count: how many units it is about; None for an operation that is not about units.
        names: the first of them, in the log's order.
        among: how many failed units there are in all.
        behind: how many units wait for those units.
        asks: whether it had better be confirmed: it ends or loses something.
        details: sentences about each of some shards, and about what follows.
        refusal: why it would be refused now; empty where nothing tells.
    """

    does: str
    count: int | None = None
    names: tuple[str, ...] = ()
    among: int | None = None
    behind: int = 0
    asks: bool = True
    details: tuple[str, ...] = ()
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class OperationOutcome:
    """What has become of an operation.

    Attributes:
        result: ASKED where somebody else carries it out, and it is not known yet whether that has happened.
        sentence: says it.
        count: of an operation on units: so many were changed.
        refused: so many units, or shards, were not changed.
        details: sentences about each of some units or shards.
        met: of a repair that other units are in the way of: the signatures that they touch, as far as these are known;
            None for all else.
    """

    result: OperationResult
    sentence: str
    count: int | None = None
    refused: int = 0
    details: tuple[str, ...] = ()
    met: frozenset[int] | None = None
