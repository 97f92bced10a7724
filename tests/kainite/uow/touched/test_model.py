"""Units that do not conflict by their signatures give the same database in either order, cascades included."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.conflicts import conflict
from kainite.uow.delta import Delta
from kainite.uow.fragment import Fragment
from kainite.uow.signature import Signatures
from kainite.uow.touches import Touched
from kainite.uow.validation import Validator
from support.cascades import (
    Change,
    Reference,
    Schema,
    Source,
    TableSpec,
    all_rows,
    changes,
    ddl,
    execute,
    filled_in,
    filled_keys,
    fillings,
    schemas,
    undone,
)


def catalogue_of(schema: Schema, folder: Path) -> Catalogue:
    path = folder / "schema.db"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript(ddl(schema))
    connection.close()
    return reflect(f"sqlite:///{path}")


def signed(deltas: Sequence[Delta], catalogue: Catalogue) -> Fragment:
    validator, signatures = Validator(catalogue), Signatures(catalogue)
    return Fragment("T", tuple(deltas), Touched(*signatures.of(validator.checked(delta) for delta in deltas)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("schemas")


few = st.lists(changes(), min_size=1, max_size=4)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(schema=schemas(folded=True), filling=fillings, pairs=st.lists(st.tuples(few, few), min_size=10, max_size=10))
def test_units_without_a_conflict_commute(
    folder: Path, schema: Schema, filling: list[int], pairs: list[tuple[list[Change], list[Change]]]
) -> None:
    catalogue = catalogue_of(schema, folder)
    for first, second in pairs:
        assert check(schema, catalogue, filling, first, second) != "missed"


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    schema=schemas(folded=True).filter(filled_keys),
    filling=fillings,
    data=st.data(),
)
def test_what_is_filled_in_may_name_any_parent(
    folder: Path, schema: Schema, filling: list[int], data: st.DataObject
) -> None:
    catalogue = catalogue_of(schema, folder)
    for first, second in data.draw(st.lists(filled_in(schema), min_size=10, max_size=10)):
        assert check(schema, catalogue, filling, first, second) != "missed"


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("named", ["id", "code"])
@pytest.mark.parametrize(
    ("filled", "below"),
    [("default", "insert"), ("generated", "insert"), ("generated", "update"), ("generated", "upsert")],
)
def test_a_child_whose_parent_is_filled_in_stays_behind_a_parent_that_was_renewed(
    folder: Path, filled: str, below: str, named: str, told: bool
) -> None:
    key = Reference(0, named, "CASCADE", "NO ACTION", filled)
    schema = (TableSpec(False, False, ()), TableSpec(False, False, (key,)))
    first = [Change("renew", 0, (1, 1), (1,) * 8, 255, told, False)]
    row = (4, 4) if below == "insert" else (2, 2)
    second = [Change(below, 1, row, (4, 4, 1, 1, 1, 1, 1, 1), 4 if below in ("update", "upsert") else 255, True, False)]
    assert check(schema, catalogue_of(schema, folder), [1] * 36, first, second) == "conflict"


def check(
    schema: Schema, catalogue: Catalogue, filling: list[int], first: Sequence[Change], second: Sequence[Change]
) -> str:
    """Runs two units in both orders; returns what came of it."""
    source, target = Source(schema), Source(schema)
    source.fill(filling)
    target.fill(filling)
    one, other = (signed(source.transaction(listed), catalogue) for listed in (first, second))
    if not one.deltas or not other.deltas:
        return "empty"
    if conflict(one.touched, other.touched):
        return "conflict"
    with undone(target.connection):
        try:
            for delta in (*other.deltas, *one.deltas):
                execute(target.connection, delta)
        except sqlite3.IntegrityError as error:
            return "missed" if "no such row" in str(error) else "refused"
        assert all_rows(target.connection, schema) == source.rows()
    return "same"
