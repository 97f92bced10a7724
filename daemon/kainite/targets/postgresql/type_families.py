"""The families of PostgreSQL's types: how a column's values are spelled before keys are compared. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kainite.uow.catalogue.tables import TypeFamily

_FAMILIES: Mapping[str, TypeFamily] = {
    "int2": TypeFamily.INTEGER,
    "int4": TypeFamily.INTEGER,
    "int8": TypeFamily.INTEGER,
    "numeric": TypeFamily.NUMERIC,
    "text": TypeFamily.TEXT,
    "varchar": TypeFamily.TEXT,
    "bpchar": TypeFamily.TEXT,
    "bool": TypeFamily.BOOLEAN,
    "uuid": TypeFamily.UUID,
    "date": TypeFamily.DATE,
    "json": TypeFamily.DOCUMENT,
    "jsonb": TypeFamily.DOCUMENT,
}


def family_of(base: str, *, enum: bool, domain: bool, deterministic: bool) -> TypeFamily:
    """Returns the family of a column.

    Args:
        base: the name of its type in ``pg_type``; of a domain, the name of the type behind it.
        enum: whether the type is an enum.
        domain: whether the column's own type is a domain.
        deterministic: whether the column's collation takes only equal bytes for equal.
    """
    # A domain over numeric may round, and its scale is not known here.
    if not deterministic or (base == "numeric" and domain):
        return TypeFamily.OPAQUE
    return TypeFamily.TEXT if enum else _FAMILIES.get(base, TypeFamily.OPAQUE)
