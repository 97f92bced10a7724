"""Which rows are explained by units that are not applied."""

from __future__ import annotations

from kainite.replicate.known_rows import Explanation, KnownRows
from kainite.replicate.stop_ledger import UnresolvedUnit
from kainite.uow.catalogue.tables import Catalogue, Column, Table, TypeFamily
from kainite.uow.delta import Delta, Operation
from kainite.uow.scheme import Scheme
from kainite.uow.signature import Signatures

KEYED = Table("item", "public", {name: Column(name, "integer", TypeFamily.INTEGER) for name in ("id", "v")}, ("id",))
PLAIN = Table("note", "public", {"text": Column("text", "text", TypeFamily.TEXT)})
CATALOGUE = Catalogue({"item": KEYED, "note": PLAIN}, "public")


def unit(*keys: int, scheme: str | None = None, partly: bool = False, unsigned: tuple[str, ...] = ()) -> UnresolvedUnit:
    """Returns a unit that updates rows of ``item``."""
    deltas = [Delta("item", Operation.UPDATE, {"id": key}, {"v": 1}, {}) for key in keys]
    written, _ = Signatures(CATALOGUE).of(deltas)
    tables = ("item",) if keys else ()
    return UnresolvedUnit(
        4, "pg-1-0/10", "failed", "a cause", tables, unsigned, written, scheme or Scheme.of(CATALOGUE).id, partly
    )


def explained(unit: UnresolvedUnit, table: str, key: dict[str, str] | None) -> Explanation:
    return KnownRows((unit,), CATALOGUE).explain(table, key)


def test_a_row_is_known_by_the_signature_of_its_key() -> None:
    assert explained(unit(5, 6), "public.item", {"id": "5"}) is Explanation.KNOWN
    assert explained(unit(5, 6), "public.item", {"id": "7"}) is Explanation.NONE
    assert KnownRows((), CATALOGUE).explain("public.item", {"id": "5"}) is Explanation.NONE


def test_tables_decide_where_signatures_say_nothing() -> None:
    assert explained(unit(5, scheme="another"), "public.item", {"id": "7"}) is Explanation.KNOWN
    assert explained(unit(5, unsigned=("item",)), "public.item", {"id": "7"}) is Explanation.KNOWN
    assert explained(unit(5), "public.note", None) is Explanation.NONE
    assert explained(unit(5), "public.unknown", {"id": "5"}) is Explanation.NONE


def test_a_unit_of_which_parts_are_missing_leaves_it_open() -> None:
    assert explained(unit(partly=True), "public.item", {"id": "7"}) is Explanation.UNSURE
    assert explained(unit(7, partly=True), "public.item", {"id": "7"}) is Explanation.KNOWN
