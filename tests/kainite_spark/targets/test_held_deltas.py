"""What is applied and held of units by the states of tables; with ledgers on servers in the kinds' own folders."""

from __future__ import annotations

from kainite.replicate.table_ledger import OwnLoadState
from kainite.uow.catalogue.tables import Catalogue, Table
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.held_deltas import HeldDeltas, KnownTables, LoadedTable, NewUnits

CATALOGUE = Catalogue({"item": Table("item", "shop", {}), "other": Table("other", None, {})}, "shop")


def unit(uow: str, *tables: str) -> Unit:
    return Unit(1, uow, tuple(Delta(table, Operation.INSERT, {}, {"id": 1}, {}) for table in tables))


def known(*tables: LoadedTable) -> KnownTables:
    made = KnownTables(CATALOGUE)
    made.know(tables, "shop")
    return made


def test_what_came_with_a_copy_is_left_out_up_to_its_point() -> None:
    tables = known(LoadedTable(("shop", "item"), 16, OwnLoadState.LIVE))
    units = [unit("my-0-1-42-15", "item", "other"), unit("my-0-1-42-16", "item"), unit("by hand", "item")]
    assert [[delta.table for delta in one.deltas] for one in tables.what_is_new(units).units] == [
        ["other"], ["item"], ["item"]
    ]  # fmt: skip
    assert known().what_is_new(units) == NewUnits(units)


def test_each_state_but_live_and_given_up_holds() -> None:
    one = unit("my-0-1-42-15", "shop.item", "other", "item")
    for state in OwnLoadState:
        table = LoadedTable(("shop", "item"), 0, state)
        new = known(table).what_is_new([one])
        applied = [delta.table for delta in new.units[0].deltas]
        if table.live:
            assert (applied, new.held, new.reached) == (["shop.item", "other", "item"], (), None)
            continue
        assert applied == ["other"], state
        assert new.reached == 15
        kept = HeldDeltas(("shop", "item"), 1, one.uow, (one.deltas[0], one.deltas[2]))
        assert new.held == ([] if state is OwnLoadState.GIVEN_UP else [kept])


def test_a_table_that_the_catalogue_lacks_yet_makes_the_session_tell_what_was_reached() -> None:
    new = known(LoadedTable(("shop", "new"), 0, OwnLoadState.LOADING)).what_is_new([unit("my-0-1-42-15", "other")])
    assert (len(new.units[0].deltas), new.held, new.reached) == (1, [], 15)
