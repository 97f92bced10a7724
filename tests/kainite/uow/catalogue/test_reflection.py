"""What is made of the tables that a reader finds: which are target tables, and how deltas call them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from kainite.base.errors import CatalogueError, SettingsError
from kainite.settings.kinds import target_kinds
from kainite.settings.kinds.target_kinds import TargetKind
from kainite.uow.catalogue.introspection import CatalogueReader, FoundForeignKey, FoundTable
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Column, ForeignKey, ReferentialAction, Table, TypeFamily

ID = Column("id", "int", TypeFamily.INTEGER, nullable=False)


def found(name: str, schema: str | None = "main", *keys: FoundForeignKey) -> FoundTable:
    return FoundTable(schema, name, (ID,), ("id",), (), keys, None, ())


def key(name: str, schema: str | None, parent: str) -> FoundForeignKey:
    return FoundForeignKey(name, ("id",), schema, parent, ("id",), deferrable=True, on_delete=ReferentialAction.CASCADE)


@dataclass
class Shelf:
    """A database of these tests: its tables by schema."""

    contents: Mapping[str, Sequence[FoundTable]]
    default: str | None = "main"
    asked: list[tuple[str | None, tuple[str, ...]]] = field(default_factory=list)
    closed: bool = False

    def default_schema(self) -> str | None:
        return self.default

    def schemas(self) -> Sequence[str]:
        return list(self.contents)

    def table_names(self, schema: str | None) -> Sequence[str]:
        return [table.name for table in self.contents.get(schema or "", ())]

    def tables(self, schema: str | None, names: Sequence[str]) -> Sequence[FoundTable]:
        self.asked.append((schema, tuple(names)))
        by_name = {table.name: table for table in self.contents.get(schema or "", ())}
        return [by_name[name] for name in names]


SHELF = Shelf({})


@contextmanager
def reading(url: str) -> Iterator[CatalogueReader]:
    """Gives the database of the test that runs."""
    yield SHELF
    SHELF.closed = True


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = TargetKind("shelf", ("shelf:",), "shelf:", f"{__name__}:none", f"{__name__}:none", f"{__name__}:reading")
    monkeypatch.setattr(target_kinds, "TARGET_KINDS", (*target_kinds.TARGET_KINDS, kind))


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    contents = {
        "main": [found("b", "main", key("z", "other", "c"), key("a", "main", "a")), found("a"), found("kainite_fence")],
        "other": [
            replace(found("c", "other"), part_of=("main", "a")),
            replace(found("d", "other"), part_of=("x", "y")),
        ],
        "empty": [found("kainite_applied", "empty")],
    }
    one = Shelf(contents)
    monkeypatch.setitem(globals(), "SHELF", one)
    return one


def test_the_default_schema_is_read_unless_told(shelf: Shelf) -> None:
    catalogue = reflect("shelf:")
    assert list(catalogue.tables) == ["a", "b"]
    assert catalogue.default_schema == "main"
    assert shelf.closed


def test_own_tables_are_not_even_asked_for(shelf: Shelf) -> None:
    reflect("shelf:", ["main", "other", "main"])
    assert shelf.asked == [("main", ("a", "b")), ("other", ("c", "d"))]


def test_tables_parents_and_families_have_the_names_of_deltas(shelf: Shelf) -> None:
    tables = reflect("shelf:", ["main", "other"]).tables
    assert tables["a"] == Table("a", "main", {"id": ID}, ("id",), judged=())
    assert tables["b"].foreign_keys == (
        ForeignKey("a", ("id",), "a", ("id",), deferrable=True, on_delete=ReferentialAction.CASCADE),
        ForeignKey("z", ("id",), "other.c", ("id",), deferrable=True, on_delete=ReferentialAction.CASCADE),
    )
    assert (tables["other.c"].schema, tables["other.c"].part_of) == ("other", "a")
    assert tables["other.d"].part_of == "x.y"


def test_a_missing_schema_is_named(shelf: Shelf) -> None:
    with pytest.raises(CatalogueError, match="target has no schema 'gone'"):
        reflect("shelf:", ["main", "none", "gone"])


@pytest.mark.parametrize(("default", "schemas", "named"), [("main", ["empty"], "empty"), (None, [], "None")])
def test_a_schema_without_tables_is_refused(shelf: Shelf, default: str | None, schemas: list[str], named: str) -> None:
    shelf.default = default
    with pytest.raises(CatalogueError, match=f"no tables in schema {named}"):
        reflect("shelf:", schemas)


def test_a_target_without_a_catalogue_says_so() -> None:
    with pytest.raises(CatalogueError, match="the kind exec cannot be asked for its tables"):
        reflect("exec:load")
    with pytest.raises(SettingsError, match="target must be"):
        reflect("oracle://h/d")
