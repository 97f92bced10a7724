"""Misfits: dispatched with their deltas, judged anew under the catalogue as it is then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.base.position import Position
from kainite.log.collecting.collect import collect
from kainite.log.format.deltas import deltas_of
from kainite.log.format.entry import Entry, EntryKind, Fault, RefitMeta, UnitMeta, UnitStatus
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.owner.refit import is_misfit, refit_entries
from kainite.owner.requests import REFUSED, decide
from kainite.settings import Isolation, LogSettings, UowSettings
from kainite.store.memory import MemoryStore
from kainite.uow.catalogue.tables import Catalogue, Column, TypeFamily
from kainite.uow.current_catalogue import CurrentCatalogue
from kainite.uow.delta import Delta, Operation, UnitEnd, Values
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.packing import Blob, Piece
from kainite.uow.scheme import MIXED
from kainite.uow.signing import Signing
from kainite.uow.touches import NOTHING, Touched
from support.next_append import append_next
from support.owned_log import owned_log
from support.tables import SHOP
from support.waiting import until

ORDERS = SHOP.tables["orders"]
COLOUR = Column("colour", "text", TypeFamily.TEXT)
WIDER = Catalogue(
    {**SHOP.tables, "orders": replace(ORDERS, columns={**ORDERS.columns, "colour": COLOUR})}, "public"
)  # fmt: skip
CHANGED = Catalogue({**SHOP.tables, "orders": replace(ORDERS, foreign_keys=())}, "public")
RULES = UowSettings()


def order(key: int, **row: object) -> Delta:
    return Delta("orders", Operation.UPSERT, {"id": key}, {"total": 1, **row}, {})


def part(uow: str, *deltas: Delta, count: int | None = None, catalogue: Catalogue = SHOP) -> Fragment:
    signing = Signing(catalogue)
    signed = signing.judge_all(deltas)
    return Fragment(
        uow=uow,
        touched=signed.touched(signing.scheme.id),
        deltas=tuple(signed.deltas),
        ends=() if count is None else (UnitEnd(count),),
        misfits=tuple(Reject(cause, "line") for _, cause in signed.misfits),
        scheme=signing.scheme,
    )


class Log:
    def __init__(self, rules: UowSettings = RULES) -> None:
        self.state = FoldedLog()
        self.rules = rules
        self.entries: list[Entry] = []

    def bring(self, *fragments: Fragment) -> None:
        at = Position(self.state.next_id + 1)
        self.entries += collect(self.state, self.rules, "s", at, fragments, 0)

    def unit(self, uow: str) -> UnitMeta:
        (meta,) = [entry.meta for entry in self.entries if isinstance(entry.meta, UnitMeta) and entry.meta.uow == uow]
        return meta

    def touched(self, uow: str) -> Touched:
        """Returns what the UNIT entry of a unit says that it touches."""
        meta = self.unit(uow)
        return next(entry.touched for entry in self.entries if entry.meta is meta)


def test_a_misfit_waits_for_all_its_deltas_and_fails_with_them_in_the_log() -> None:
    log = Log()
    log.bring(part("T", order(1, colour="red"), count=2))
    assert not log.state.units
    log.bring(part("T", order(2)))
    unit = log.state.find("T")
    assert unit is not None
    assert is_misfit(unit)
    assert log.unit("T").fault is Fault.MISFIT
    assert log.unit("T").cause == "table 'orders' has no column 'colour', which 'row' names"
    kept = [delta for tid in unit.entries for delta in deltas_of(log.entries[tid])]
    assert [dict(delta.row) for delta in kept] == [{"total": 1, "colour": "red"}, {"total": 1, "id": 2}]


def test_a_unit_with_what_is_no_delta_is_malformed_whatever_else_is_wrong_with_it() -> None:
    log = Log()
    fragment = replace(part("T", order(1, colour="red"), count=2), rejects=(Reject("no delta", "?"),))
    log.bring(fragment)
    assert log.unit("T").fault is not Fault.MISFIT
    assert log.unit("T").cause == "no delta; table 'orders' has no column 'colour', which 'row' names"


def test_a_scheme_is_noted_before_the_first_entry_that_names_it_and_once() -> None:
    log = Log()
    log.bring(part("T", order(1), count=1))
    log.bring(part("U", order(2), count=1))
    log.bring(part("V", order(3), count=1, catalogue=WIDER))
    kinds = [entry.kind for entry in log.entries]
    assert kinds.count(EntryKind.SCHEME) == 1
    assert kinds[0] is EntryKind.SCHEME
    assert log.touched("T").scheme == log.touched("V").scheme == Signing(SHOP).scheme.id


def test_a_unit_whose_parts_were_signed_under_two_schemes_has_neither() -> None:
    log = Log()
    log.bring(part("T", order(1), count=2))
    log.bring(part("T", order(2), catalogue=CHANGED))
    assert log.touched("T").scheme == MIXED
    log.bring(part("U", order(3)))
    log.bring(part("U", count=1, catalogue=CHANGED))
    assert log.touched("U").scheme == Signing(SHOP).scheme.id, "an end alone is not signed"


def refit(log: Log, catalogue: Catalogue = WIDER) -> None:
    unit = log.state.find("T")
    assert unit is not None
    journal = Journal(log.state, 0)
    signing = Signing(catalogue)
    deltas = [delta for tid in unit.entries for delta in deltas_of(log.entries[tid])]
    refit_entries(journal, log.rules, unit, signing, signing.judge_all(deltas))
    log.entries += journal.entries


def test_a_misfit_keeps_its_source_s_own_spelling_until_its_table_is_there() -> None:
    log = Log()
    without = Catalogue({name: table for name, table in SHOP.tables.items() if name != "orders"}, "public")
    bare = Delta("orders", Operation.UPSERT, row={"id": 1}, values=Values.DSQL)
    log.bring(part("T", bare, count=1, catalogue=without))
    refit(log, SHOP)
    (delta,) = deltas_of(log.entries[-1])
    whole = {"id": 1, "customer": None, "parent_order": None, "total": None}
    assert (delta.key, delta.row, delta.values) == ({"id": 1}, whole, None)


def test_a_refit_replaces_deltas_signatures_and_scheme_and_lets_a_retry_through() -> None:
    log = Log()
    bad = Delta("ordres", Operation.DELETE, {"id": 1}, {}, {})
    log.bring(part("T", bad, order(1), count=2))
    later = Catalogue({**SHOP.tables, "ordres": replace(ORDERS, name="ordres", foreign_keys=())}, "public")
    refit(log, later)
    unit = log.state.find("T")
    assert unit is not None
    assert (unit.status, unit.fault, unit.malformed, unit.unsigned) == (UnitStatus.FAILED, None, False, ())
    assert unit.scheme == Signing(later).scheme.id
    assert set(unit.tables) == {"orders", "ordres"}
    assert unit.entries == (len(log.entries) - 1,)
    assert isinstance(log.entries[-1].meta, RefitMeta)
    assert unit.written == log.entries[-1].touched.written
    assert not log.state.misfits
    decision = decide(log.state, "r", {"action": "retry", "uow": "T"})
    assert decision.outcome is not None


def test_a_retry_is_refused_while_the_unit_does_not_fit() -> None:
    log = Log()
    log.bring(part("T", order(1, colour="red"), count=1))
    for judged in (None, Signing(SHOP).judge_all([order(1, colour="red")])):
        decision = decide(log.state, "r", {"action": "retry", "uow": "T"}, judged)
        assert decision.answer["result"] == REFUSED
        assert "has no column 'colour'" in decision.answer["message"]
    fits = Signing(WIDER).judge_all([order(1, colour="red")])
    assert decide(log.state, "r", {"action": "retry", "uow": "T"}, fits).outcome is not None
    assert decide(log.state, "r", {"action": "discard", "uow": "T"}).outcome is not None


@pytest.mark.parametrize("fitted", [False, True])
def test_a_snapshot_keeps_misfits_refits_and_the_schemes_in_use(fitted: bool) -> None:
    log = Log()
    log.bring(part("open", order(7), catalogue=CHANGED))
    log.bring(part("T", order(1, colour="red"), count=1))
    if fitted:
        refit(log)
    loaded = snapshot.load(snapshot.dump(log.state))
    assert snapshot.dump(loaded) == snapshot.dump(log.state)
    assert loaded.units == log.state.units
    assert loaded.open == log.state.open
    assert loaded.misfits == log.state.misfits
    assert loaded.schemes == log.state.schemes
    assert set(loaded.schemes) == {Signing(CHANGED).scheme.id, Signing(SHOP).scheme.id}


def test_with_relaxed_isolation_nothing_is_compared() -> None:
    log = Log(UowSettings(isolation=Isolation.RELAXED))
    log.bring(part("T", order(1, colour="red"), count=1))
    assert log.touched("T") == NOTHING
    refit(log)
    unit = log.state.find("T")
    assert unit is not None
    assert (unit.written, unit.scheme, unit.tables) == (frozenset(), None, ())


async def test_a_misfit_whose_deltas_cannot_be_read_stays_as_it_is_and_the_log_goes_on() -> None:
    store = MemoryStore()
    misfit = replace(part("T", order(1, colour="red"), count=1), piece=Piece(Blob(b"no frame", 2, 0), 0, 2))
    async with owned_log(store, LogSettings("t", "a", enabled=True, put_interval=0.0, poll=0.01), RULES) as owner:
        await append_next(owner, "s0", Position(1), Position(1), (misfit,))
        owner.judge_by(CurrentCatalogue(lambda: WIDER, WIDER, interval=0.0), every=0.001)
        request = store.put_request("0", {"action": "retry", "uow": "T", "by": "a test"})
        await until(lambda: not store.read_requests("0"))
        assert "cannot be judged anew" in str(store.take_answer("0", request))
        await append_next(owner, "s0", Position(2), Position(2), (part("U", order(2), count=1),))
        statuses = {unit.uow: unit.status for unit in owner.state.units.values()}
        assert statuses == {"T": UnitStatus.FAILED, "U": UnitStatus.IN_PROGRESS}
