"""Partitions sign as the table that they are a part of, with the keys of the whole family."""

from __future__ import annotations

from dataclasses import replace

from kainite.uow.catalogue.tables import UniqueKey
from kainite.uow.delta import Delta, Operation
from kainite.uow.touched.family import families
from support.tables import CASCADE, INTEGER, acting, catalogue, columns, foreign_key, table
from support.touching import conflicting, delta, signed

WHOLE = table("whole", columns(id=INTEGER, code=INTEGER, up=INTEGER), ("id",), foreign_key(("up",), "top", ("id",)))
PART = replace(WHOLE, name="part", part_of="whole", unique_keys=(UniqueKey("local", ("code",)),))
TABLES = catalogue(
    WHOLE,
    PART,
    table("top", columns(id=INTEGER)),
    table("child", columns(id=INTEGER, whole=INTEGER), ("id",), acting("whole", "part", CASCADE)),
)


def test_a_row_has_one_signature_by_either_name() -> None:
    for op in ("insert", "upsert", "delete"):
        one, other = (signed(delta(op, name, 1), TABLES) for name in ("whole", "part"))
        assert one == other
    assert conflicting(delta("update", "part", 1, code=5), delta("update", "whole", "1", code=6), TABLES)


def test_the_partitions_own_unique_key_holds_for_the_whole() -> None:
    assert conflicting(delta("insert", "part", 1, code=5), delta("insert", "whole", 2, code=5), TABLES)


def test_parents_and_children_are_those_of_the_whole() -> None:
    assert conflicting(delta("insert", "part", 1, up=5), delta("delete", "top", 5), TABLES)
    for name in ("whole", "part"):
        assert conflicting(delta("delete", name, 1), delta("update", "child", 7, whole=2), TABLES)
        assert conflicting(delta("delete", name, 1), delta("insert", "child", 7, whole=1), TABLES)


def test_partitions_of_a_table_outside_the_catalogue_are_one_family() -> None:
    tables = catalogue(replace(PART, foreign_keys=()), replace(PART, name="other", foreign_keys=()))
    assert conflicting(delta("delete", "part", 1), delta("insert", "other", 1), tables)


def test_a_partition_may_have_the_only_primary_key() -> None:
    keyless = replace(WHOLE, primary_key=())
    tables = catalogue(keyless, PART, TABLES.tables["top"])
    insert = Delta("whole", Operation.INSERT, {}, {"id": 1}, {})
    assert conflicting(insert, delta("update", "part", 1, code=5), tables)


def test_a_family_has_each_key_of_its_tables_once() -> None:
    second = replace(PART, name="second", unique_keys=(UniqueKey("same, named otherwise", ("code",)),))
    found = families(catalogue(second, *TABLES.tables.values()))

    whole = found["whole"]
    assert found["part"] is found["second"] is whole
    assert whole.name == "whole"
    assert whole.primary_keys == (("id",),)
    assert [key.columns for key in whole.unique_keys] == [("code",)]
    assert [(key.columns, key.parent) for key in whole.foreign_keys] == [(("up",), "top")]


def test_unique_keys_that_treat_nulls_otherwise_are_two() -> None:
    strict = replace(PART, name="strict", unique_keys=(UniqueKey("local", ("code",), nulls_distinct=False),))
    whole = families(catalogue(WHOLE, PART, strict))["whole"]

    assert sorted(key.nulls_distinct for key in whole.unique_keys) == [False, True]


def test_a_foreign_key_to_a_partition_is_one_to_the_whole() -> None:
    [key] = families(TABLES)["child"].foreign_keys

    assert key.parent == "whole"


def test_tables_without_partitions_are_families_of_their_own() -> None:
    found = families(TABLES)

    assert {name: found[name].name for name in ("top", "child")} == {"top": "top", "child": "child"}
