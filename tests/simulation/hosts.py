"""The processes of a world: each is kept going as an operator's init system does it, and incidents befall them.

A part that ends or is killed starts again some seconds later, as a new process. Only Kainite's own errors may end one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from kainite.base.errors import KainiteError, LogCorruptError, LogFencedError, TargetRejectedError
from kainite.log.contract import Slot
from kainite.log.format.entry import STARTED, Batch, ControlMeta, UnitMeta
from kainite.store.dynamodb import DynamoDBStore
from kainite.store.memory import MemoryStore
from simulation.faults import Faults
from simulation.log_items import SimLogClient, SimLogTable
from simulation.log_store import SimLogStore
from simulation.loop import Hub, Process
from simulation.oracle import BrokenPromiseError
from simulation.plan import OWNER, Incident, Scenario

WELL_S = 20.0
"""Seconds after the last fault from which on nobody may take a log partition from a living owner."""


class Tenures:
    """Who has owned the log's partitions; judges what former owners put, by the store's requests alone.

    An owner that has renewed its lease, or put a batch, has closed the tail against earlier ones. Where the log was
    truncated a former owner may still put a batch; nobody reads it.

    Args:
        taken: is told the partition, who has claimed it without a release, and who had claimed it before.
        broken: is told what is wrong.
    """

    def __init__(self, taken: Callable[[str, str, str], None], broken: Callable[[str], None]) -> None:
        self.mounted: dict[str, str] = {}
        """Who has mounted each log partition last."""
        self.units: set[str] = set()
        """The units that have been dispatched in the log."""
        self.begun: set[str | None] = set()
        """The streams of which a log has noted when reading begins; one stream is None."""
        self._taken = taken
        self._broken = broken
        self._closed: dict[str, int] = {}
        self._next: dict[str, int] = {}
        self._nonces: set[str] = set()

    def claimed(self, partition: str, name: str, *, released: bool) -> None:
        before = self.mounted.get(partition)
        self.mounted[partition] = name
        if before not in (None, name) and not released:
            self._taken(partition, name, str(before))

    def renewed(self, partition: str, generation: int) -> None:
        self._closed[partition] = max(self._closed.get(partition, 0), generation)

    def put(self, partition: str, batch: Batch, nonce: str, there: Slot | None) -> None:
        """Judges the answer to a put: the slot in its way, or None."""
        what = f"batch {batch.first_id} of generation {batch.generation} in log partition {partition}"
        if there is not None:
            if there.generation == batch.generation and nonce not in self._nonces:
                self._broken(f"{what} has its own owner's slot in its way")
            return
        if nonce in self._nonces:
            return
        self._nonces.add(nonce)
        self.units |= {entry.meta.uow for entry in batch.entries if isinstance(entry.meta, UnitMeta)}
        self.begun |= {entry.meta.key for entry in batch.entries if _notes_beginning(entry.meta)}
        closed = self._closed.get(partition, 0)
        if batch.generation < closed and batch.first_id >= self._next.get(partition, 0):
            self._broken(f"{what} was put although an owner of generation {closed} was at work")
        self.renewed(partition, batch.generation)
        self._next[partition] = max(self._next.get(partition, 0), batch.last_id + 1)

    def lacking(self, partition: str, first_id: int) -> None:
        """Reports a slot that was put before its chunks were there, unless it stands where the log was truncated."""
        if first_id >= self._next.get(partition, 0):
            self._broken(f"slot {first_id} of log partition {partition} stands there without its chunks")


def _notes_beginning(meta: Any) -> TypeGuard[ControlMeta]:
    return isinstance(meta, ControlMeta) and meta.what == STARTED


@dataclass
class Hosts:
    """The processes, and the log's store, which outlives them.

    Attributes:
        running: the process in each slot.
        stops: what tells the process in a slot to end.
        notes: who ended by itself, and why.
        tenures: who has owned the log's partitions.
        main: the log partition whose owner is meant where an incident befalls an owner.
        made: all processes that there were.
    """

    plan: Scenario
    hub: Hub
    faults: Faults
    main: str = "0"
    store: MemoryStore | DynamoDBStore = field(init=False)
    tenures: Tenures = field(init=False)
    running: dict[int, Process] = field(default_factory=dict)
    stops: dict[int, Callable[[], None]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    made: set[Process] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tenures = Tenures(self._is_taken, self.broken)
        self._table = SimLogTable(self.hub)
        self.store = self._items_of(None) if self.plan.more.chunk_bytes else MemoryStore()

    def process(self, name: str, slot: int | None = None) -> Process:
        """Returns a new process; that of a slot is on one of the hosts."""
        host = "" if slot is None else f"host{slot % self.plan.hosts}"
        process = Process(self.hub, name, host, self.plan.more.pids)
        self.made.add(process)
        return process

    def occupy(self, slot: int, process: Process, again: Callable[[], None]) -> None:
        """Puts a process in a slot; when it dies, ``again`` puts another one there."""
        self.running[slot] = process

        def restart() -> None:
            if self.running[slot] is process:
                pause = self.faults.between(0.2, 8.0, "restart", process.name)
                self.hub.after(pause, again)

        process.on_death.append(restart)

    def ended(self, process: Process, error: BaseException | None) -> None:
        """Takes note of a process that ended by itself."""
        if error is not None:
            self.notes.append(f"{self.hub.now:.3f} {process.name} ended: {error}")
            stopped = isinstance(error, TargetRejectedError) and not self.plan.more.stop
            if not isinstance(error, KainiteError) or stopped or self._without_cause(process, error):
                self.hub.errors.append(error)
        process.kill()

    def broken(self, wrong: str) -> None:
        """Ends the run: a promise is broken."""
        if not self.hub.closing:
            self.hub.errors.append(BrokenPromiseError(wrong))

    def store_of(self, process: Process) -> SimLogStore | DynamoDBStore:
        """Returns the log's store as a process has it."""
        if self.plan.more.chunk_bytes:
            return self._items_of(process)
        return SimLogStore(self.store, self.faults, process, self.tenures)

    def _items_of(self, process: Process | None) -> DynamoDBStore:
        client: Any = SimLogClient(self._table, self.faults, process, self.tenures)
        return DynamoDBStore(client, "l")

    def expect(self, otherwise: Callable[[Incident], None] = lambda _: None) -> None:
        """Schedules the incidents; what befalls no process is done by ``otherwise``."""
        for number, incident in enumerate(self.plan.incidents):
            self.hub.after(
                incident.at, lambda number=number, incident=incident: self._befall(number, incident, otherwise)  # type: ignore[misc]
            )  # fmt: skip
        self.hub.after(self.plan.until, self._calm)

    def _is_taken(self, partition: str, name: str, before: str) -> None:
        """Reports a defect when a partition was taken from an owner that was well, with no fault for long."""
        alive = [one for one in self.hub.processes if one.name == before and not (one.dead or one.frozen)]
        if alive and self.hub.now > max(self.plan.until, self.faults.latest) + WELL_S:
            self.broken(f"{name} took log partition {partition} from {before}, which was well")

    def _without_cause(self, process: Process, error: KainiteError) -> bool:
        """Tells whether a process gave its log partition up though nobody else has mounted the partition since."""
        gave_up = isinstance(error, LogCorruptError | LogFencedError)
        return gave_up and process.name in self.tenures.mounted.values()

    def _befall(self, number: int, incident: Incident, otherwise: Callable[[Incident], None]) -> None:
        alive = [slot for slot in sorted(self.running) if not self.running[slot].dead]
        if incident.whom == OWNER:
            alive = [slot for slot in alive if self.running[slot].name == self.tenures.mounted.get(self.main)]
        slot = alive[incident.whom % len(alive)] if alive else None
        if slot is None or not self.faults.happens(f"{incident.what} {number} ({self.running[slot].name})"):
            return
        process = self.running[slot]
        match incident.what:
            case "kill":
                process.kill()
            case "freeze":
                process.freeze()
                self.faults.later(incident.amount, process.resume)
            case "stop":
                self.hub.after(0.0, self.stops[slot], process)
            case "skew":
                process.skew += incident.amount
            case _:
                otherwise(incident)

    def _calm(self) -> None:
        """Ends all faults but those of zombies, whose sleep was decided before."""
        for slot in self.running:
            self.hub.after(self.faults.between(0.0, 5.0, "calm", slot), self.running[slot].resume)
