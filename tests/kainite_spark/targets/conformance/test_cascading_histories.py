"""Random histories on random schemas whose foreign keys act: the target ends as the source did, in groups of any size.

The source tells nothing of what a foreign key's action did, leaves ``before`` out, and spells numbers as text, as it
pleases. Every unit must be committed, since its own order can be applied; what set-based statements do must not
differ from it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kainite.base.errors import TargetRejectedError
from kainite.uow.delta import Delta
from kainite.uow.validation import Validator
from kainite_spark.targets.contract import Unit
from support.cascades import Change, Schema, Source, changes, ddl, fillings, schemas
from support.stores import Database, Store, Stores

units = st.lists(st.lists(changes(), min_size=1, max_size=8), min_size=1, max_size=5)
_SLOW = settings(deadline=None, suppress_health_check=list(HealthCheck))


def fresh(url: str, path: Path | None) -> Stores:
    """Returns an empty database: a new file, or a PostgreSQL database without tables."""
    if path is not None:
        for old in path.parent.glob(f"{path.name}*"):
            old.unlink()
        sqlite3.connect(path).close()
        return Stores(Database(f"sqlite:///{path}"))
    stores = Stores(Database(url))
    stores.database.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return stores


def rows(store: Store, schema: Schema) -> list[list[tuple[Any, ...]]]:
    found = [store.database.rows(f"SELECT {', '.join(spec.columns)} FROM t{i}") for i, spec in enumerate(schema)]
    return [sorted(each, key=repr) for each in found]


def unit(store: Store, tid: int, deltas: Sequence[Delta]) -> Unit:
    validator = Validator(store.catalogue)
    return store.unit(tid, *(validator.checked(delta) for delta in deltas))


def check(stores: Stores, schema: Schema, filling: list[int], history: Sequence[list[Change]], group: int) -> None:
    store, source = stores.open(ddl(schema)), Source(schema)
    try:
        assert store.statuses(unit(store, 0, source.fill(filling))) == ["committed"]
        listed = [unit(store, tid, source.transaction(each)) for tid, each in enumerate(history, start=1)]
        told = [one for one in listed if one.deltas]
        assert store.statuses(*told, group_units=group) == ["committed"] * len(told)
        assert rows(store, schema) == source.rows()
    finally:
        stores.close()


@settings(_SLOW, max_examples=60)
@given(schema=schemas(folded=True), filling=fillings, history=units, group=st.sampled_from([1, 2, 100]))
def test_any_history_on_sqlite(
    tmp_path_factory: pytest.TempPathFactory,
    schema: Schema,
    filling: list[int],
    history: list[list[Change]],
    group: int,
) -> None:
    path = tmp_path_factory.getbasetemp() / "cascading.db"
    check(fresh("", path), schema, filling, history, group)


def unmixed(schema: Schema) -> bool:
    """Returns whether NO ACTION does not stand beside keys that act.

    Where both reach a row from one parent, PostgreSQL may check the one before it carries out the other, by the order
    in which the keys were made, and refuse what SQLite, the source here, takes.
    """
    actions = {action for spec in schema for key in spec.references for action in (key.on_delete, key.on_update)}
    return "NO ACTION" not in actions or actions == {"NO ACTION"}


@settings(_SLOW, max_examples=10)
@given(
    schema=schemas(folded=False).filter(unmixed), filling=fillings, history=units, group=st.sampled_from([1, 2, 100])
)
def test_any_history_on_postgresql(
    postgres: str, schema: Schema, filling: list[int], history: list[list[Change]], group: int
) -> None:
    check(fresh(postgres, None), schema, filling, history, group)


@settings(_SLOW, max_examples=60)
@given(
    schema=schemas(folded=True),
    filling=fillings,
    changed=st.lists(changes(), min_size=2, max_size=10),
    late=st.booleans(),
)
def test_a_unit_is_applied_as_the_source_did_it_or_refused(
    tmp_path_factory: pytest.TempPathFactory, schema: Schema, filling: list[int], changed: list[Change], late: bool
) -> None:
    """Applies units by set-based statements alone; the source may defer its checks."""
    stores = fresh("", tmp_path_factory.getbasetemp() / "alone.db")
    store, source = stores.open(ddl(schema)), Source(schema)
    try:
        assert store.statuses(unit(store, 0, source.fill(filling))) == ["committed"]
        before = rows(store, schema)
        try:
            store.session.apply(store.fence, [unit(store, 1, source.transaction(changed, deferred=late))])
        except TargetRejectedError:
            assert rows(store, schema) == before
        else:
            assert rows(store, schema) == source.rows()
    finally:
        stores.close()
