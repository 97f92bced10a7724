"""Deltas on rows with the key ``id``, their signatures, and whether two of them conflict."""

from __future__ import annotations

from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.conflicts import conflict
from kainite.uow.delta import Delta, Operation, Row
from kainite.uow.signature import Signatures
from kainite.uow.touches import Touched
from support.tables import PETS


def delta(op: str, name: str, number: int | str, before: Row | None = None, /, **row: object) -> Delta:
    written = {"id": number, **row} if op in ("insert", "upsert") else row
    return Delta(name, Operation(op), {"id": number}, written, before or {})


def signed(one: Delta, tables: Catalogue) -> Touched:
    return Touched(*Signatures(tables).of([one]))


def conflicting(one: Delta, other: Delta, tables: Catalogue = PETS) -> bool:
    return conflict(signed(one, tables), signed(other, tables))
