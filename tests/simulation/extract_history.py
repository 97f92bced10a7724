"""What commits in a simulated PostgreSQL: tables with columns of several types, and transactions of a few or of several
hundred rows. Pure; values are PostgreSQL's own texts, as a walsender sends them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final, TypeAlias


class Kept(Enum):
    """A value that is stored out of line, that an update left as it was, and that is not sent."""

    KEPT = "kept"


KEPT: Final = Kept.KEPT
Values: TypeAlias = tuple[str | Kept | None, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: ``type_oid`` is PostgreSQL's; ``key`` tells whether the primary key has it."""

    name: str
    type_oid: int
    key: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A published table of the schema ``public``; with ``full`` it has REPLICA IDENTITY FULL."""

    oid: int
    name: str
    columns: tuple[Column, ...]
    full: bool = False

    def key_of(self, values: Values) -> Values:
        """Returns the row as a message names it by its key: the other columns are null."""
        return tuple(value if column.key else None for column, value in zip(self.columns, values, strict=True))


@dataclass(frozen=True, slots=True)
class Change:
    """A change: of a row ``new`` is what it is then, ``old`` the row before, or its key alone; TRUNCATE has neither."""

    table: Table
    kind: str
    new: Values | None = None
    old: Values | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """A transaction before it commits, ``at`` seconds; one without changes sends its begin and its end alone."""

    at: float
    changes: tuple[Change, ...]
    heartbeat: bool = False


BOOL, INT8, INT4, TEXT, TEXTS, TIMESTAMPTZ, NUMERIC, UUID, JSONB = 16, 20, 23, 25, 1009, 1184, 1700, 2950, 3802
MOOD: Final = 16_500
"""The OID of an enum's type, which has a message of its own."""

TABLES: Final = (
    Table(16_401, "account", (Column("id", INT4, key=True), Column("owner", TEXT), Column("balance", NUMERIC),
                              Column("open", BOOL))),
    Table(16_402, "entry", (Column("account", INT4, key=True), Column("id", INT8, key=True), Column("at", TIMESTAMPTZ),
                            Column("amount", NUMERIC), Column("tags", TEXTS))),
    Table(16_403, "journal", (Column("id", INT8, key=True), Column("line", TEXT), Column("meta", JSONB)), full=True),
    Table(16_404, "document", (Column("id", UUID, key=True), Column("mood", MOOD), Column("body", TEXT),
                               Column("meta", JSONB))),
)  # fmt: skip

_TEXTS = (
    "", "plain", "it's \"quoted\" \\ and \\\\ so", "Käse, 北京, 𝄞, e\u0301", "tab\tline\nend\r", "\x01\x1f\x7f\u0085",
    "\u2028\u2029\ufeff\ufffe", '{"uow":"pg-1-0/1","number":7}', '{"offset":null}', "NULL", "x" * 700,
)  # fmt: skip
_NUMERICS = ("0", "-0.00", "1.50", "NaN", "Infinity", "1e-7", "98765432109876543210.0123456789", "-17")
_ARRAYS = ("{}", '{a,"b c",NULL,"d\\"e","{}"}', "{ü,NULL}", '{""}')
_JSONS = ("null", "{}", '{"a": [1, 2.50, "\\u0000"], "offset": 1}', "12345678901234567890", '"\\ud834\\udd1e"')
_TIMES = ("2026-11-29 14:31:59.123456+00", "infinity", "0044-03-15 00:00:00+00 BC", "294276-12-31 23:59:59+00")


def history(rng: Random, transactions: int, until: float, most_rows: int) -> list[Work]:
    """Returns transactions in the order of their commits; about one of ten has ``most_rows`` changes or nearly so."""
    times = sorted(rng.uniform(0.3, until) for _ in range(transactions))
    return [Work(at, tuple(_change(rng) for _ in range(_size(rng, most_rows)))) for at in times]


def _size(rng: Random, most_rows: int) -> int:
    dice = rng.random()
    if dice < 0.1:
        return 0
    return rng.randrange(max(1, most_rows // 2), most_rows + 1) if dice > 0.9 else rng.choice((1, 1, 2, 5, 12))


def _change(rng: Random) -> Change:
    table = rng.choice(TABLES)
    dice = rng.random()
    if dice < 0.01:
        return Change(table, "truncate")
    row = tuple(_value(rng, column) for column in table.columns)
    if dice < 0.5:
        return Change(table, "insert", row)
    before = tuple(_value(rng, column) for column in table.columns)
    if dice < 0.65:
        return Change(table, "delete", old=before if table.full else table.key_of(before))
    if table.full:
        return Change(table, "update", row, before)
    after = tuple(KEPT if column.name in ("body", "meta") and rng.random() < 0.5 else value
                  for column, value in zip(table.columns, row, strict=True))  # fmt: skip
    return Change(table, "update", after, table.key_of(before) if rng.random() < 0.2 else None)


def _value(rng: Random, column: Column) -> str | None:
    if not column.key and rng.random() < 0.1:
        return None
    match column.type_oid:
        case 16:
            return rng.choice("tf")
        case 20 | 23:
            return str(rng.randrange(-(2**31), 2**31))
        case 1009:
            return rng.choice(_ARRAYS)
        case 1184:
            return rng.choice(_TIMES)
        case 1700:
            return rng.choice(_NUMERICS)
        case 2950:
            return f"{rng.getrandbits(32):08x}-0000-4000-8000-000000000000"
        case 3802:
            return rng.choice(_JSONS)
        case oid if oid == MOOD:
            return rng.choice(("glad", "so-so"))
    return rng.choice(_TEXTS)
