"""The model of the target's tables: columns, keys and foreign keys.

The catalogue is read from the target (:mod:`kainite.uow.catalogue.reflection`) or from a JSON file. A shard host with a
file needs no database driver. A catalogue does not change; another read gives another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class TypeFamily(StrEnum):
    """The rule by which a column's values get one spelling before they are compared.

    ``OPAQUE`` values have no spelling that Kainite can be sure of (floats, time stamps, collations that
    ignore case, arrays …): two keys that differ only in such columns conflict. So it is with a ``DOCUMENT``, a value
    of ``json`` or ``jsonb``, which a delta has as a text or as what the text says.

    ``GENERAL_CI`` and ``SWEDISH_CI`` are texts of a collation that :mod:`kainite.uow.collations` knows. ``BYTES`` are
    binary strings: a text, or ``\\x`` and hexadecimal digits.
    """

    INTEGER = "integer"
    NUMERIC = "numeric"
    TEXT = "text"
    GENERAL_CI = "general_ci"
    SWEDISH_CI = "swedish_ci"
    BYTES = "bytes"
    BOOLEAN = "boolean"
    UUID = "uuid"
    DATE = "date"
    DOCUMENT = "document"
    OPAQUE = "opaque"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: ``type`` is the target's own spelling, fit for a cast in its SQL.

    ``generated`` columns are computed by the target and never written; identity columns are not. ``identity`` is set
    for one that is GENERATED ALWAYS: an insert may write it, an update may not.
    """

    name: str
    type: str
    family: TypeFamily
    nullable: bool = True
    generated: bool = False
    identity: bool = False


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A unique constraint or index.

    ``columns`` is empty when columns do not determine which rows exclude each other (a partial or
    expression index, an exclusion constraint): then any two rows of the table may exclude each other.
    """

    name: str
    columns: tuple[str, ...]
    nulls_distinct: bool = True


class ReferentialAction(StrEnum):
    """The target's action on child rows when their parent goes away, or changes the columns that name it.

    ``NO_ACTION`` stands for ``RESTRICT`` too: the target changes nothing, and refuses what leaves an orphan.
    """

    NO_ACTION = "no action"
    CASCADE = "cascade"
    SET_NULL = "set null"
    SET_DEFAULT = "set default"


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key: ``columns`` of the child name ``parent_columns`` of ``parent``, in the same order."""

    name: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    deferrable: bool = False
    on_delete: ReferentialAction = ReferentialAction.NO_ACTION
    on_update: ReferentialAction = ReferentialAction.NO_ACTION

    @property
    def acts(self) -> bool:
        """Returns whether the target changes child rows by itself."""
        return any(action is not ReferentialAction.NO_ACTION for action in (self.on_delete, self.on_update))


@dataclass(frozen=True, slots=True)
class Table:
    """A target table. ``name`` is its name in deltas: with the schema, except for the default schema.

    ``part_of`` is set for a partition, and for a table that inherits from another: the name of the outermost
    table, whose rows include this table's. That table need not be in the catalogue.

    ``judged`` has the columns whose values the target judges by more than their type and the keys (a CHECK, a
    domain). It is None when that is not known, and when the target does more with a change than to make it: an
    expression that is computed, a row that moves to another partition. Triggers and rules are not told here: sessions
    of the apply job ask for them in each transaction.

    ``defaults`` has the columns that the target may fill in by itself where an insert does not name them: by a default,
    an identity, a sequence; generated columns need not be there. It is None when that is not known.
    """

    name: str
    schema: str | None
    columns: Mapping[str, Column]
    primary_key: tuple[str, ...] = ()
    unique_keys: tuple[UniqueKey, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    part_of: str | None = None
    judged: tuple[str, ...] | None = None
    defaults: tuple[str, ...] | None = None

    @property
    def bare_name(self) -> str:
        """Returns the table's name without its schema."""
        return self.name.removeprefix(f"{self.schema}.") if self.schema else self.name

    @property
    def full_name(self) -> str:
        """Returns a name that does not depend on which schema is the default one of whoever reads the catalogue."""
        return f"{self.schema}.{self.bare_name}" if self.schema else self.name


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All target tables by the name that deltas use.

    Attributes:
        tables: by name.
        default_schema: a delta may name a table of it with or without it.
        more_defaults: the default schemas of further targets, where the tables are of several targets.
    """

    tables: Mapping[str, Table]
    default_schema: str | None = None
    more_defaults: tuple[str, ...] = ()

    def find(self, name: str) -> Table | None:
        """Returns the table that a delta calls ``name``, with or without the default schema."""
        table = self.tables.get(name)
        if table is None and self.default_schema:
            table = self.tables.get(name.removeprefix(f"{self.default_schema}."))
        if table is None and self.more_defaults:
            bare = (name.removeprefix(f"{schema}.") for schema in self.more_defaults)
            table = next((self.tables[one] for one in bare if one in self.tables), None)
        return table
