"""Deltas and the end of a unit of work, as a child emits them.

An ``emit`` line carries a list of objects (docs/protocol.md). Each object is one of

* a delta, ``{"uow":"T-17","table":"sales.order_line","op":"insert","key":{…},"row":{…}}``;
* an end, ``{"uow":"T-17","end":true,"count":3,"number":17}``;
* a refusal, ``{"uow":"T-17","refused":{"cause":"no record of AWS DMS"}}``: the record processor cannot carry a change
  of the unit, and says why.

``ordinal`` is a delta's place in its source transaction, counted from 0. It is optional. With it, the source's order is
restored, and a transaction may have several deltas that are equal: without it, of equal deltas in a unit all but
the first count as sent again (:mod:`kainite.uow.identity`).

``time`` is the commit time of the source transaction, nanoseconds since the epoch by the source's clock, as a number or
text; a delta or an end may tell it. It belongs to the unit and not to the delta: it takes no part in the delta's
identity. The unit's time is the latest one that its deltas and its end tell (:func:`commit_time`).

A delta with the operation ``truncate`` deletes all rows of its table, and names none: it has no key, row or old values.

``mayMiss`` says of a delete that its row need not be there: the target was filled by a copy that was made while the
source went on, and the row may have been gone by then.

A delta may leave its ``key`` out, where ``row`` or ``before`` has it, and tell with ``values`` that its values are the
source's own spelling: :mod:`kainite.uow.completion`.

A refusal, and an object that is none of the three, raise :class:`~kainite.base.errors.DeltaError` with the cause: the
caller fails the unit, never the shard.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

import msgspec

from kainite.base.errors import DeltaError

Json: TypeAlias = Any
Row: TypeAlias = Mapping[str, Json]
E = TypeVar("E", bound=StrEnum)

MAX_UOW_LENGTH = 256

MAX_REFUSAL = 500
"""The most characters of a refusal's cause that are kept; the line that was emitted has the rest."""

MAX_TIME = 2**63 - 1
"""The latest commit time, nanoseconds since the epoch."""

MAX_NATURAL = 2**63 - 1
"""The highest count, number and ordinal: the log holds no number beyond 64 bits, and also stores the next number."""
_EMPTY: Row = {}
_TIME_DIGITS = 19
_DELTA_FIELDS = frozenset({"uow", "table", "op", "key", "row", "before", "ordinal", "time", "values", "mayMiss"})
_END_FIELDS = frozenset({"uow", "end", "count", "number", "kind", "time"})


class Operation(StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    UPSERT = "upsert"
    TRUNCATE = "truncate"


# For what is asked of each delta many times: looking a member up in its enum takes Python 3.11 0.1 µs.
INSERT, UPDATE, DELETE, UPSERT, TRUNCATE = Operation


class Values(StrEnum):
    """The spelling of a delta's values, where it is the source's own and not that of the target's types.

    ``DSQL`` is Aurora DSQL's (:mod:`kainite.uow.dsql_values`), where a column that is absent is NULL; with
    ``DSQL_SPARSE`` an absent column is not written.
    """

    DSQL = "dsql"
    DSQL_SPARSE = "dsql-sparse"


class UnitKind(StrEnum):
    """The relation of a unit to earlier failed units with the same signatures."""

    NORMAL = "normal"
    CORRECTION = "correction"
    REVERSAL = "reversal"


# A dictionary: the enum's own lookup by value takes longer than the rest of reading a delta.
_OPERATIONS: Mapping[str, Operation] = {operation.value: operation for operation in Operation}
_VALUES: Mapping[str, Values] = {values.value: values for values in Values}
_KINDS: Mapping[str, UnitKind] = {kind.value: kind for kind in UnitKind}
_NORMAL = UnitKind.NORMAL


class Delta(msgspec.Struct, frozen=True, gc=False, rename={"may_miss": "mayMiss"}):
    """One insert, update, delete or upsert of one row of one target table; or the deletion of all rows of a table.

    A struct, because msgspec makes it of its JSON in the log in a third of the time that a dataclass takes.

    Attributes:
        table: the target table, with its schema where it is not the default one.
        op: the operation on the row.
        key: every primary-key column and its value before the change; empty for a table
            without a primary key.
        row: the columns to write; empty for a delete.
        before: the old values, as far as the source knows them.
        ordinal: the delta's place in its source transaction, where the source numbers them.
        values: the source's own spelling, in which the values are; None where they are as the target takes them.
        may_miss: whether a delete need not meet a row.
    """

    table: str
    op: Operation
    key: Row = {}
    row: Row = {}
    before: Row = {}
    ordinal: int | None = None
    values: Values | None = None
    may_miss: bool = False

    def to_json(self) -> dict[str, Json]:
        """Returns the object that :func:`parse_delta` reads back, without the unit's name."""
        fields: dict[str, Json] = {"table": self.table, "op": self.op.value}
        optional = {"key": self.key, "row": self.row, "before": self.before}
        fields.update((name, value) for name, value in optional.items() if value)
        if self.ordinal is not None:
            fields["ordinal"] = self.ordinal
        if self.values is not None:
            fields["values"] = self.values.value
        if self.may_miss:
            fields["mayMiss"] = True
        return fields


class UnitEnd(msgspec.Struct, frozen=True, array_like=True):
    """The end of a unit: how many deltas it has in all, and its number and kind if the source gives them."""

    count: int
    number: int | None = None
    kind: UnitKind = UnitKind.NORMAL


def uow_of(item: Json) -> str:
    """Returns the name of the unit that an emitted object belongs to.

    Raises:
        DeltaError: the value is no object, or names no unit.
    """
    if not isinstance(item, dict):
        raise DeltaError(f"a delta is a JSON object, not {_typename(item)}")
    uow = item.get("uow")
    if not isinstance(uow, str) or not 0 < len(uow) <= MAX_UOW_LENGTH:
        raise DeltaError(f"'uow' must be a string of 1 to {MAX_UOW_LENGTH} characters")
    return uow


def is_end(item: Mapping[str, Json]) -> bool:
    return "end" in item


def parse_delta(item: Mapping[str, Json]) -> Delta:
    """Reads a delta object.

    Raises:
        DeltaError: a field is missing, unknown, of the wrong type, or does not go with ``op``; or the object is a
            refusal, whose own cause the error tells.
    """
    if "refused" in item:
        raise _refusal(item["refused"])
    if not item.keys() <= _DELTA_FIELDS:
        raise _unknown(item, _DELTA_FIELDS, "a delta")
    table = item.get("table")
    if not isinstance(table, str) or not table:
        raise DeltaError("'table' must be a non-empty string")
    delta = Delta(
        table=table,
        op=_word(item, "op", _OPERATIONS),
        key=_object(item, "key"),
        row=_object(item, "row"),
        before=_object(item, "before"),
        ordinal=_natural(item, "ordinal"),
        values=_word(item, "values", _VALUES) if "values" in item else None,
        may_miss=_flag(item, "mayMiss"),
    )
    _check_shape(delta)
    return delta


def commit_time(item: Mapping[str, Json]) -> int | None:
    """Returns the commit time that a delta or an end tells, nanoseconds since the epoch; None when it tells none.

    Raises:
        DeltaError: it is no such time.
    """
    value = item.get("time")
    if value is None or (type(value) is int and 0 <= value <= MAX_TIME):
        return value
    if isinstance(value, str) and len(value) <= _TIME_DIGITS and value.isascii() and value.isdigit():
        return commit_time({"time": int(value)})
    raise DeltaError(f"'time' must be a whole number of nanoseconds since the epoch, not {_typed(value)}")


def parse_end(item: Mapping[str, Json]) -> UnitEnd:
    """Reads an end object.

    Raises:
        DeltaError: a field is missing, unknown or of the wrong type.
    """
    if not item.keys() <= _END_FIELDS:
        raise _unknown(item, _END_FIELDS, "an end")
    if item["end"] is not True:
        raise DeltaError("'end' must be true")
    count = _natural(item, "count")
    if count is None:
        raise DeltaError("'count' is missing: an end says how many deltas its unit has")
    kind = _word(item, "kind", _KINDS) if "kind" in item else _NORMAL
    return UnitEnd(count=count, number=_natural(item, "number"), kind=kind)


def _check_shape(delta: Delta) -> None:
    if delta.op is TRUNCATE:
        if delta.key or delta.row or delta.before or delta.values or delta.may_miss:
            raise DeltaError("a truncate has its table alone: it names no row")
        return
    if delta.op is DELETE:
        if delta.row:
            raise DeltaError("a delete has no 'row'")
    elif not delta.row:
        raise DeltaError(f"'row' is missing: {delta.op} needs the columns to write")
    if delta.may_miss and delta.op is not DELETE:
        raise DeltaError(f"'mayMiss' is for deletes, not for an {delta.op}")
    if delta.op is DELETE and not delta.key and not delta.before:
        raise DeltaError(f"'key' is missing: {delta.op} needs the row's primary key")


def _refusal(told: Json) -> DeltaError:
    """Returns the error that tells a refusal's cause, on one line."""
    cause = told.get("cause") if isinstance(told, dict) else None
    if not isinstance(cause, str) or not cause.strip():
        return DeltaError("'refused' must be an object with 'cause', the reason as text")
    return DeltaError(" ".join(cause.split())[:MAX_REFUSAL])


def _unknown(item: Mapping[str, Json], known: frozenset[str], what: str) -> DeltaError:
    return DeltaError(f"unknown field {min(item.keys() - known)!r} in {what}")


def _word(item: Mapping[str, Json], field: str, known: Mapping[str, E]) -> E:
    value = item.get(field)
    found = known.get(value) if isinstance(value, str) else None
    if found is None:
        raise DeltaError(f"{field!r} must be one of {', '.join(known)}, not {_typed(value)}")
    return found


def _object(item: Mapping[str, Json], field: str) -> Row:
    value = item.get(field)
    if value is None:
        return _EMPTY
    if not isinstance(value, dict):
        raise DeltaError(f"{field!r} must be an object, not {_typename(value)}")
    return value


def _flag(item: Mapping[str, Json], field: str) -> bool:
    value = item.get(field, False)
    if not isinstance(value, bool):
        raise DeltaError(f"{field!r} must be true or false, not {_typed(value)}")
    return value


def _natural(item: Mapping[str, Json], field: str) -> int | None:
    value = item.get(field)
    if value is None:
        return None
    if type(value) is not int or value < 0:
        raise DeltaError(f"{field!r} must be a whole number from 0, not {_typed(value)}")
    if value > MAX_NATURAL:
        raise DeltaError(f"{field!r} must be at most {MAX_NATURAL}, not {value}")
    return value


def _typed(value: Json) -> str:
    """Returns a value as an error message shows it: the value if it is short, otherwise its type."""
    text = repr(value) if isinstance(value, (str, int, float)) else ""
    return text if 0 < len(text) <= 40 else _typename(value)


def _typename(value: Json) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")
