"""The daemon's side of a log without an event loop: appends what the log's owner would, when the test says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson

from kainite.base.clock import epoch_ms
from kainite.base.position import Position
from kainite.log.collecting.collect import collect
from kainite.log.collecting.overdue import expire
from kainite.log.contract import LogStore
from kainite.log.format.entry import (
    SNAPSHOT,
    SNAPSHOT_PART,
    Batch,
    ControlMeta,
    Entry,
    EntryKind,
    StatusMeta,
    UnitStatus,
)
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.outcomes import outcomes_of, outcomes_partition
from kainite.log.state.snapshot_sections import manifest
from kainite.log.state.target_parts import through_of
from kainite.owner.correcting import correct
from kainite.owner.mount import mount, new_token
from kainite.owner.pausing import PAUSE, RESUME, pause_or_resume
from kainite.owner.refit import is_kept, judge_anew, refit_entries
from kainite.owner.repairing import read_since, repair
from kainite.owner.requests import decide
from kainite.owner.target_outcomes import assignment_entries, copied, write_decision
from kainite.settings import UowOrder, UowSettings
from kainite.settings.assignment import TableAssignment
from kainite.uow.delta import Delta, UnitEnd, UnitKind
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.signature import Signatures
from kainite.uow.signing import Signing
from kainite.uow.touches import Touched
from support.log_builders import needed


class MainLog:
    """Owns the main log partition of a store for the length of a test."""

    def __init__(self, store: LogStore, signatures: Signatures | Signing, partition: str = "0") -> None:
        self.store = store
        self.partition = partition
        self.signatures = signatures
        self.state = FoldedLog()
        self._mount = mount(store, partition, "the daemon", 600.0)
        self._position = 0

    def unit(self, uow: str, *deltas: Delta, kind: UnitKind = UnitKind.NORMAL) -> int:
        """Dispatches a whole unit in a batch of its own; returns its transaction id."""
        self.append(self.fragment(uow, *deltas, ends=(UnitEnd(len(deltas), kind=kind),)))
        return self.tid(uow)

    def malformed(self, uow: str, *deltas: Delta) -> int:
        """Dispatches a unit that is failed from the start."""
        fragment = self.fragment(uow, *deltas, ends=(UnitEnd(len(deltas)),))
        self.append(replace(fragment, rejects=(Reject("bad", "?"),)))
        return self.tid(uow)

    def fragment(self, uow: str, *deltas: Delta, ends: tuple[UnitEnd, ...] = ()) -> Fragment:
        if isinstance(self.signatures, Signatures):
            written, read = self.signatures.of(deltas)
            return Fragment(uow, deltas, Touched(written, read), ends)
        signed = self.signatures.judge_all(deltas)
        return Fragment(
            uow=uow,
            touched=signed.touched(self.signatures.scheme.id),
            deltas=tuple(signed.deltas),
            ends=ends,
            misfits=tuple(Reject(cause, delta.table) for delta, cause in signed.misfits),
            scheme=self.signatures.scheme,
        )

    def append(self, *fragments: Fragment) -> None:
        """Appends the fragments of one ``processRecords`` call as one batch."""
        self._position += 1
        rules = UowSettings()
        self._put(collect(self.state, rules, "shard-0", Position(self._position), fragments, epoch_ms()))

    def expire(self, uow: str) -> int:
        """Fails an open unit, as if it had waited too long; returns its transaction id."""
        self._put(expire(self.state, UowSettings(), epoch_ms(), {uow}))
        return self.tid(uow)

    def tid(self, uow: str) -> int:
        unit = self.state.find(uow)
        assert unit is not None, f"{uow} is not in the log"
        return unit.tid

    def take_outcomes(self) -> None:
        """Copies the outcomes that the apply job appended, as the owner does on a timer."""
        for target in self.state.targets.assignment.names or ("",):
            first_id = through_of(target, self.state.through, self.state.targets) + 1
            partition = outcomes_partition(self.partition, target)
            batches = list(self.store.read_batches(partition, first_id, strong=True))
            if batches:
                self._put(copied(self.state, target, outcomes_of(batches, first_id), batches[-1].last_id))

    def assign(self, targets: TableAssignment) -> None:
        """Notes which target a table belongs to, as the owner does at the mount."""
        self._put(assignment_entries(self.state, targets))

    def ask(self, action: str, uow: str, target: str = "") -> str:
        """Decides a request of ``kainite uow``, about a unit or its part in a target; returns its result."""
        signing = self.signatures if isinstance(self.signatures, Signing) else Signing(None)
        unit = self.state.find(uow)
        kept = unit is not None and action == "retry" and is_kept(unit)
        judged = judge_anew(self.store, self.partition, unit.entries, signing) if unit and kept else None
        request = {"action": action, "uow": uow, "by": "a test", "target": target}
        decision = decide(self.state, new_token(), request, judged)
        if decision.outcome is not None:
            journal = Journal(self.state, epoch_ms())
            if unit is not None and judged is not None:
                refit_entries(journal, UowSettings(), unit, signing, judged)
            write_decision(journal, "r", decision.outcome, target)
            self._put(journal.entries)
        return decision.answer["result"]

    def pause(self, *, resume: bool = False) -> None:
        """Pauses applying, as a person asks the owner to, or lets it go on."""
        journal = Journal(self.state, epoch_ms())
        action = RESUME if resume else PAUSE
        pause_or_resume(journal, new_token(), {"action": action, "by": "a test", "why": "migration"})
        self._put(journal.entries)

    def correct(self, uow: str, name: str, *deltas: Delta) -> str:
        """Sends a correction, as a person does; returns the answer's result."""
        assert isinstance(self.signatures, Signing)
        journal = Journal(self.state, epoch_ms())
        text = orjson.dumps([delta.to_json() for delta in deltas]).decode()
        request = {"action": "correct", "uow": uow, "name": name, "deltas": text, "by": "a test"}
        answer = correct(journal, new_token(), request, UowSettings(), self.signatures)
        self._put(journal.entries)
        return answer["result"]

    def repair(self) -> None:
        """Answers the repairs in the inbox, as the owner of a log with ``uowOrder = dense``."""
        assert isinstance(self.signatures, Signing)
        for request_id, request in self.store.read_requests(self.partition):
            journal, low = Journal(self.state, epoch_ms()), self._mount.head.low_water_mark
            seen = read_since(self.store, self.partition, request, low, self.state.next_id)
            rules = UowSettings(order=UowOrder.DENSE)
            answer = repair(journal, request_id, request, rules, self.signatures, seen)
            self._put(journal.entries)
            self.store.answer_request(self.partition, request_id, answer)

    def statuses(self) -> dict[str, UnitStatus]:
        """Returns the statuses of unresolved units."""
        return {unit.uow: unit.status for unit in self.state.units.values()}

    def status(self, meta: StatusMeta) -> None:
        journal = Journal(self.state, epoch_ms())
        journal.write(EntryKind.STATUS, meta)
        self._put(journal.entries)

    def control(self, what: str, key: str) -> None:
        """Appends a CONTROL entry."""
        journal = Journal(self.state, epoch_ms())
        journal.write(EntryKind.CONTROL, ControlMeta(what, key=key))
        self._put(journal.entries)

    def snapshot(self) -> None:
        """Appends a snapshot that the head names, and truncates the entries before it that nobody needs."""
        journal = Journal(self.state, epoch_ms())
        since, part = self.state.next_id, snapshot.dump(self.state)
        journal.write(EntryKind.CONTROL, ControlMeta(SNAPSHOT_PART), data=part)
        journal.write(EntryKind.CONTROL, ControlMeta(SNAPSHOT, since), data=manifest([since]))
        self._put(journal.entries)
        self._mount.renew(snapshot=self.state.snapshot_id)
        self.truncate(min(self.state.snapshot_id, needed(self.state)))

    def truncate(self, below: int) -> None:
        self._mount.renew(low_water_mark=below)
        self.store.truncate(self.partition, below)

    def _put(self, entries: Sequence[Entry]) -> None:
        first = self.state.next_id - len(entries)
        batch = Batch(first, self._mount.generation, epoch_ms(), tuple(entries))
        assert self.store.put_batch(self.partition, batch, new_token()) is None
