"""Catalogues made by hand: orders and what hangs on them, five levels deep; and owners whose pets go with them."""

from __future__ import annotations

from dataclasses import replace

from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, ReferentialAction, Table, TypeFamily, UniqueKey

CASCADE = ReferentialAction.CASCADE
INTEGER, TEXT, NUMERIC = TypeFamily.INTEGER, TypeFamily.TEXT, TypeFamily.NUMERIC
_TYPES = {INTEGER: "bigint", TEXT: "text", NUMERIC: "numeric(12,2)"}


def columns(**families: TypeFamily) -> dict[str, Column]:
    """Returns columns by name, each nullable."""
    return {name: Column(name, _TYPES.get(family, family.value), family) for name, family in families.items()}


def foreign_key(
    columns: tuple[str, ...], parent: str, parent_columns: tuple[str, ...], *, deferrable: bool = False
) -> ForeignKey:
    return ForeignKey(f"{'_'.join(columns)}_to_{parent}", columns, parent, parent_columns, deferrable)


def acting(
    column: str,
    parent: str,
    on_delete: ReferentialAction,
    on_update: ReferentialAction = ReferentialAction.NO_ACTION,
    named: str = "id",
) -> ForeignKey:
    """Returns a foreign key that acts."""
    return replace(foreign_key((column,), parent, (named,)), on_delete=on_delete, on_update=on_update)


def table(
    name: str,
    columns: dict[str, Column],
    primary_key: tuple[str, ...] = ("id",),
    *keys: UniqueKey | ForeignKey,
) -> Table:
    return Table(
        name=name,
        schema="public",
        columns=columns,
        primary_key=primary_key,
        unique_keys=tuple(key for key in keys if isinstance(key, UniqueKey)),
        foreign_keys=tuple(key for key in keys if isinstance(key, ForeignKey)),
    )


def catalogue(*tables: Table) -> Catalogue:
    return Catalogue({table.name: table for table in tables}, "public")


SHOP = catalogue(
    table("country", columns(code=TEXT, name=TEXT), ("code",)),
    table(
        "customer",
        columns(id=INTEGER, email=TEXT, country=TEXT, name=TEXT),
        ("id",),
        UniqueKey("customer_email", ("email",)),
        foreign_key(("country",), "country", ("code",)),
    ),
    table(
        "orders",
        columns(id=INTEGER, customer=INTEGER, parent_order=INTEGER, total=NUMERIC),
        ("id",),
        foreign_key(("customer",), "customer", ("id",)),
        foreign_key(("parent_order",), "orders", ("id",)),
    ),
    table(
        "order_line",
        columns(order_id=INTEGER, line=INTEGER, qty=INTEGER),
        ("order_id", "line"),
        foreign_key(("order_id",), "orders", ("id",)),
    ),
    table(
        "shipment",
        columns(id=INTEGER, order_id=INTEGER, line=INTEGER, notify=TEXT),
        ("id",),
        foreign_key(("line", "order_id"), "order_line", ("line", "order_id")),
        foreign_key(("notify",), "customer", ("email",)),
    ),
    table("history", columns(customer=INTEGER, note=TEXT), (), foreign_key(("customer",), "customer", ("id",))),
)

PETS = catalogue(
    table("owner", columns(id=INTEGER, name=INTEGER)),
    table("pet", columns(id=INTEGER, owner=INTEGER, v=INTEGER), ("id",), acting("owner", "owner", CASCADE)),
    table("toy", columns(id=INTEGER, pet=INTEGER, v=INTEGER), ("id",), acting("pet", "pet", CASCADE)),
)
