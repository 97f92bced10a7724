"""A unit never passes one that it conflicts with, whatever happens to the catalogue between their signatures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kainite.log.state.unit_state import UnitState
from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, Table, TypeFamily, UniqueKey
from kainite.uow.conflicts import conflict
from kainite.uow.delta import Delta, Operation
from kainite.uow.scheme import KEYS_ALONE, MIXED, Comparisons, Scheme
from kainite.uow.signing import Signing
from kainite_spark.plan.backlog import Backlog
from kainite_spark.plan.holders import Holders
from support.unit_states import unit_state

COLUMNS = {name: Column(name, "bigint", TypeFamily.INTEGER) for name in ("id", "u", "p")}
BASE = Catalogue({name: Table(name, "public", COLUMNS, ("id",)) for name in "abc"}, "public")
NEW = Column("new", "text", TypeFamily.TEXT)

Change = Callable[[Catalogue, str], Catalogue]


def changed(catalogue: Catalogue, table: Table) -> Catalogue:
    return Catalogue({**catalogue.tables, table.name: table}, "public")


def with_column(catalogue: Catalogue, name: str, column: Column) -> Catalogue:
    table = catalogue.tables[name]
    return changed(catalogue, replace(table, columns={**table.columns, column.name: column}))


def unique(catalogue: Catalogue, name: str) -> Catalogue:
    return changed(catalogue, replace(catalogue.tables[name], unique_keys=(UniqueKey("u", ("u",)),)))


def refers(catalogue: Catalogue, name: str, parent: str = "a", column: str = "id") -> Catalogue:
    key = ForeignKey("p", ("p",), parent, (column,))
    return changed(catalogue, replace(catalogue.tables[name], foreign_keys=(key,)))


def key_of_text(catalogue: Catalogue, name: str) -> Catalogue:
    return with_column(catalogue, name, Column("id", "text", TypeFamily.TEXT))


def child_of_text(catalogue: Catalogue, name: str) -> Catalogue:
    return with_column(refers(catalogue, name), name, Column("p", "text", TypeFamily.TEXT))


def expression_index(catalogue: Catalogue, name: str) -> Catalogue:
    return changed(catalogue, replace(catalogue.tables[name], unique_keys=(UniqueKey("expression", ()),)))


HARMLESS: Mapping[str, Change] = {
    "a new nullable column": lambda catalogue, name: with_column(catalogue, name, NEW),
    "a wider type": lambda catalogue, name: with_column(catalogue, name, replace(COLUMNS["u"], type="numeric")),
    "a column that is not null any more": lambda catalogue, name: with_column(
        catalogue, name, replace(COLUMNS["u"], nullable=False)
    ),
}
HARMFUL: Mapping[str, Change] = {
    "a new unique key": unique,
    "a new foreign key": refers,
    "a foreign key to another column": lambda catalogue, name: refers(unique(catalogue, "a"), name, "a", "u"),
    "a foreign key to the table itself": lambda catalogue, name: refers(catalogue, name, name),
    "another type of the key": key_of_text,
    "another type of a foreign key": child_of_text,
    "another primary key": lambda catalogue, name: changed(
        catalogue, replace(catalogue.tables[name], primary_key=("id", "p"))
    ),
    "an index that deltas cannot tell": expression_index,
    "another table": lambda catalogue, _: changed(catalogue, Table("d", "public", COLUMNS, ("id",))),
    "a child table": lambda catalogue, name: refers(
        changed(catalogue, Table("d", "public", COLUMNS, ("id",))), "d", name
    ),
}

VALUES = st.sampled_from([1, 2, "1", None])
ROWS = st.fixed_dictionaries({"u": VALUES, "p": VALUES})


@st.composite
def deltas(draw: st.DrawFn) -> Delta:
    op = draw(st.sampled_from(Operation))
    key = {"id": draw(st.sampled_from([1, 2, "1"]))}
    row = {} if op is Operation.DELETE else draw(ROWS)
    before = {} if op is Operation.INSERT else draw(ROWS)
    return Delta(draw(st.sampled_from("abcd")), op, key, row, before)


UNITS = st.lists(deltas(), min_size=1, max_size=2)
CHANGES = st.lists(st.tuples(st.sampled_from([*HARMLESS, *HARMFUL]), st.sampled_from("abc")), max_size=3)


def catalogue_of(changes: Sequence[tuple[str, str]]) -> Catalogue:
    found = BASE
    for change, name in changes:
        found = {**HARMLESS, **HARMFUL}[change](found, name)
    return found


def signed(tid: int, signing: Signing, unit: Sequence[Delta]) -> tuple[UnitState, bool]:
    """Returns a unit as the log has it, and whether it fits the catalogue."""
    judged = signing.judge_all(unit)
    pending = unit_state(
        tid, judged.written, judged.read, count=len(unit),
        tables=tuple(sorted(judged.tables)), unsigned=tuple(sorted(judged.unsigned)), scheme=signing.scheme.id,
    )  # fmt: skip
    return pending, not judged.misfits


def holders(*signings: Signing) -> Holders:
    return Holders(knowing(*signings))


def knowing(*signings: Signing) -> Comparisons:
    schemes = Comparisons()
    for signing in signings:
        schemes.add(signing.scheme.id, signing.scheme)
    return schemes


@settings(max_examples=250)
@given(CHANGES, CHANGES, UNITS, UNITS)
@example([], [("a new unique key", "b")], [Delta("b", Operation.UPDATE, {"id": 1}, {"u": 5}, {"u": 1})],
         [Delta("b", Operation.INSERT, {"id": 2}, {"u": 1, "p": 1}, {})])  # fmt: skip
@example([], [("a new foreign key", "b")], [Delta("b", Operation.INSERT, {"id": 1}, {"u": 1, "p": 1}, {})],
         [Delta("a", Operation.DELETE, {"id": 1}, {}, {"u": 1, "p": 1})])  # fmt: skip
def test_whatever_conflicts_under_either_catalogue_is_held_back(
    before: list[tuple[str, str]], after: list[tuple[str, str]], earlier: list[Delta], later: list[Delta]
) -> None:
    one, other = Signing(catalogue_of(before)), Signing(catalogue_of(after))
    holder, _ = signed(0, one, earlier)
    unit, _ = signed(1, other, later)
    found = holders(one, other)
    found.add(holder)
    for signing in (one, other):
        (first, fits), (second, too) = signed(0, signing, earlier), signed(1, signing, later)
        if fits and too and conflict(first, second):
            assert found.find(unit) == 0


@given(CHANGES, UNITS, UNITS)
def test_under_one_catalogue_signatures_alone_decide(
    changes: list[tuple[str, str]], earlier: list[Delta], later: list[Delta]
) -> None:
    signing = Signing(catalogue_of(changes))
    (holder, fits), (unit, _) = signed(0, signing, earlier), signed(1, signing, later)
    found = holders(signing)
    found.add(holder)
    if fits:
        assert found.find(unit) == (0 if conflict(holder, unit) else None)


@pytest.mark.parametrize("change", HARMLESS)
def test_a_harmless_change_leaves_the_scheme_as_it_is(change: str) -> None:
    assert Scheme.of(catalogue_of([(change, "b")])).id == Scheme.of(catalogue_of([])).id


@pytest.mark.parametrize("change", HARMFUL)
def test_a_change_of_signatures_is_another_scheme(change: str) -> None:
    assert Scheme.of(catalogue_of([(change, "b")])).id != Scheme.of(catalogue_of([])).id


def test_a_new_table_parts_no_units_on_the_tables_that_were_there() -> None:
    schemes = knowing(old := Signing(BASE), new := Signing(catalogue_of([("another table", "a")])))
    assert not schemes.parted(old.scheme.id, ("a",), new.scheme.id, ("a",))
    assert not schemes.parted(old.scheme.id, ("a",), new.scheme.id, ("d",))
    assert schemes.parted(old.scheme.id, ("d",), new.scheme.id, ("d",)), "the old catalogue did not have it"


def test_a_change_parts_units_on_tables_that_foreign_keys_connect_and_no_others() -> None:
    schemes = knowing(old := Signing(BASE), new := Signing(catalogue_of([("a new foreign key", "b")])))
    assert schemes.parted(old.scheme.id, ("b",), new.scheme.id, ("a",))
    assert schemes.parted(new.scheme.id, ("b",), old.scheme.id, ("a",))
    assert not schemes.parted(old.scheme.id, ("c",), new.scheme.id, ("a", "b"))


@pytest.mark.parametrize("scheme", [MIXED, "never heard of"])
def test_a_unit_of_no_known_scheme_is_parted_from_all_on_its_tables(scheme: str) -> None:
    schemes = knowing(known := Signing(BASE))
    assert schemes.parted(scheme, ("a",), known.scheme.id, ("a",))
    assert not schemes.parted(scheme, ("a",), known.scheme.id, ("b",))


def test_two_mixed_units_are_parted() -> None:
    assert knowing().parted(MIXED, ("a",), MIXED, ("a",))


def test_units_of_a_release_that_noted_no_scheme_are_compared_by_their_signatures() -> None:
    schemes = knowing(known := Signing(BASE))
    assert not schemes.parted(None, (), known.scheme.id, ("a",))
    assert not schemes.parted(known.scheme.id, ("a",), None, ())


def test_without_a_catalogue_there_is_one_scheme() -> None:
    assert Signing(None).scheme.id == KEYS_ALONE
    assert not knowing().parted(KEYS_ALONE, ("a",), KEYS_ALONE, ("a",))


def unit(tid: int, scheme: str | None, *tables: str, unsigned: tuple[str, ...] = ()) -> UnitState:
    return unit_state(tid, {tid}, tables=tables, scheme=scheme, unsigned=unsigned)


def test_the_earliest_holder_is_found_by_any_rule() -> None:
    found = holders(old := Signing(BASE), new := Signing(catalogue_of([("a new unique key", "a")])))
    for tid in (5, 3, 4):
        found.add(unit(tid, old.scheme.id, "a"))
    found.add(unit(2, new.scheme.id, "b", unsigned=("b",)))
    assert found.find(unit(9, new.scheme.id, "a")) == 3
    assert found.find(unit(9, new.scheme.id, "b")) == 2
    assert found.find(unit(9, new.scheme.id, "c")) is None
    assert found.find(unit(3, new.scheme.id, "a")) is None, "later units hold back nothing"


def test_no_micro_batch_has_units_of_two_schemes() -> None:
    schemes = ["s", "s", "t", MIXED, MIXED, None, "t", "t"]
    backlog = Backlog({tid: unit(tid, scheme, "a") for tid, scheme in enumerate(schemes)})
    for tid in range(len(schemes)):
        backlog.add(tid)
    taken = []
    while selection := backlog.take(100, 100).units:
        taken.append([one.tid for one in selection])
        backlog.settle([])
        backlog.forget_resolved({one.tid for one in selection})
    assert taken == [[0, 1], [2], [3], [4], [5], [6, 7]]
