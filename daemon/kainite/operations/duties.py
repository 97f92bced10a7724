"""Operations on the fleet: its duties, its workers."""

from __future__ import annotations

from collections.abc import Callable, Container

from kainite.fleet.model.records import Command
from kainite.fleet.operator import Operator
from kainite.log.format.entry import OperationKind
from kainite.operations.operation import (
    DORMANCY,
    AddDuty,
    ChangeDuty,
    DutyChange,
    FleetOperation,
    MoveDuty,
    Preview,
    Rebalance,
    RemoveDuty,
    SetDormancy,
    ShutDownWorker,
)


def preview_fleet(operation: FleetOperation) -> Preview:
    """Returns what an operation on the fleet would do."""
    match operation:
        case AddDuty(duty, work):
            return Preview(f"add duty {duty}: {work.command_line}", asks=False)
        case RemoveDuty(duty):
            return Preview(f"remove duty {duty}")
        case ChangeDuty(duty, DutyChange.START | DutyChange.ENABLE | DutyChange.CLEAR_ERROR as change):
            return Preview(f"{change} duty {duty}: the leader gives it to a worker", asks=False)
        case ChangeDuty(duty, DutyChange.KILL):
            return Preview(f"kill the program of duty {duty}: its restart policy decides what follows")
        case ChangeDuty(duty, change):
            again = "enabled" if change is DutyChange.DISABLE else "started"
            return Preview(f"{change} duty {duty}, until it is {again} again")
        case MoveDuty(duty, worker):
            return Preview(f"stop duty {duty} and start it at {worker}")
        case SetDormancy(worker, dormant):
            empties = f"give the duties of worker {worker} to others, and no new ones to it, until it is enabled"
            return Preview(empties if dormant else f"let worker {worker} take duties again", asks=dormant)
        case ShutDownWorker(worker):
            return Preview(f"end worker {worker}: its duties and its shards go to others")
        case Rebalance():
            return Preview("move duties, one after the other, so that the load is even")


def kind_and_subject(operation: FleetOperation) -> tuple[OperationKind, str]:
    """Returns the kind of an operation on the fleet, and what it is about, for its record."""
    match operation:
        case AddDuty(duty):
            return OperationKind.DUTY, f"add duty {duty}"
        case RemoveDuty(duty):
            return OperationKind.DUTY, f"remove duty {duty}"
        case ChangeDuty(duty, change):
            return OperationKind.DUTY, f"{change} duty {duty}"
        case MoveDuty(duty, worker):
            return OperationKind.DUTY, f"move duty {duty} to {worker}"
        case SetDormancy(worker, dormant):
            return OperationKind.WORKER, f"{DORMANCY[dormant]} worker {worker}"
        case ShutDownWorker(worker):
            return OperationKind.WORKER, f"shut down worker {worker}"
        case Rebalance():
            return OperationKind.WORKER, "rebalance"


def change_fleet(operator: Operator, operation: FleetOperation, declared: Callable[[], Container[str]]) -> str:
    """Changes the fleet; returns what has been done, or asked for, as a sentence.

    Args:
        operator: changes it.
        operation: what is changed.
        declared: gives the names of the duties that the settings declare.

    Raises:
        FleetError, FleetUnavailableError: as of :class:`~kainite.fleet.operator.Operator`.
    """
    match operation:
        case AddDuty(duty, work):
            operator.add(duty, work)
            return f"duty {duty} added"
        case RemoveDuty(duty):
            operator.remove(duty, declared)
            return f"duty {duty} removed"
        case ChangeDuty(duty, change):
            return f"duty {duty} {_change(operator, duty, change)}"
        case MoveDuty(duty, worker):
            operator.move(duty, worker)
            return f"duty {duty} moves to {worker}"
        case SetDormancy(worker, dormant):
            operator.send(worker, DORMANCY[dormant])
            return f"worker {worker} is asked to {'give its duties away' if dormant else 'take duties again'}"
        case ShutDownWorker(worker):
            operator.send(worker, Command.SHUT_DOWN)
            return f"worker {worker} is asked to end"
        case Rebalance():
            operator.rebalance()
            return "the leader is asked to rebalance"


def _change(operator: Operator, duty: str, change: DutyChange) -> str:
    match change:
        case DutyChange.START:
            started = operator.start(duty)
            return f"is {started.status} at {started.worker}" if started.status.held else "will be started"
        case DutyChange.STOP:
            return "will be stopped" if operator.stop(duty).status.held else "is stopped"
        case DutyChange.ENABLE:
            halted = operator.enable(duty).halted
            return f"enabled{', and stays stopped until it is started' if halted else ''}"
        case DutyChange.DISABLE:
            operator.disable(duty)
            return "disabled"
        case DutyChange.KILL:
            operator.kill(duty)
            return "will be killed"
        case DutyChange.CLEAR_ERROR:
            operator.clear_error(duty)
            return "may be tried again: its error is cleared"
