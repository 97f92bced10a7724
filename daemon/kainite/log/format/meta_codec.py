"""The meta of a log entry as JSON: the same in all versions of a batch.

New fields are optional; where they are absent, they mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import orjson

from kainite.base.position import Position
from kainite.log.format.entry import (
    ControlMeta,
    EntryKind,
    Fault,
    FragmentMeta,
    Meta,
    Outcome,
    PositionMeta,
    RefitMeta,
    SchemeMeta,
    StatusMeta,
    TransactionMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.uow.delta import UnitKind

T = TypeVar("T")

# A dictionary: the enum's own lookup by value takes longer than the rest of reading an outcome.
_STATUSES: Mapping[str, UnitStatus] = {status.value: status for status in UnitStatus}


def encode_meta(meta: Meta) -> bytes:
    """Returns a meta as JSON; sequence numbers are strings because they exceed 64 bits."""
    if isinstance(meta, PositionMeta):
        return orjson.dumps([meta.shard, str(meta.position.sequence), meta.position.sub])
    if isinstance(meta, UnitMeta):
        return orjson.dumps(_unit_fields(meta))
    return orjson.dumps(_fragment_fields(meta) if isinstance(meta, FragmentMeta) else meta)


def _fragment_fields(meta: FragmentMeta) -> dict[str, Any]:
    """Returns what a FRAGMENT entry says: what every release needs, and what is not as it is without it."""
    fields: dict[str, Any] = {
        "uow": meta.uow,
        "shard": meta.shard,
        "count": meta.count,
        "ordinals": meta.ordinals,
        "end_count": meta.end_count,
        "number": meta.number,
        "unit_kind": meta.unit_kind,
        "causes": meta.causes,
        "offending": meta.offending,
    }
    if meta.digests:
        fields["digests"] = meta.digests
    if meta.repeated:
        fields["repeated"] = meta.repeated
    if meta.misfits:
        fields["misfits"] = meta.misfits
    _add_optional(fields, meta)
    return fields


def _unit_fields(meta: UnitMeta) -> dict[str, Any]:
    """Returns what a UNIT entry says: a third of the time, and half of the bytes, that all its fields would take."""
    fields: dict[str, Any] = {
        "uow": meta.uow,
        "count": meta.count,
        "shards": meta.shards,
        "fragments": meta.fragments,
        "number": meta.number,
        "kind": meta.kind,
        "conflict": meta.conflict,
        "cause": meta.cause,
        "offending": meta.offending,
    }
    _add_optional(fields, meta)
    return fields


def _add_optional(fields: dict[str, Any], meta: FragmentMeta | UnitMeta) -> None:
    """Adds what entries of both kinds may have."""
    if meta.tables:
        fields["tables"] = meta.tables
    if meta.scheme is not None:
        fields["scheme"] = meta.scheme
    if meta.unsigned:
        fields["unsigned"] = meta.unsigned
    if meta.fault is not None:
        fields["fault"] = meta.fault
    if meta.without:
        fields["without"] = meta.without
    if meta.time is not None:
        fields["time"] = meta.time
    if meta.arrived_ms is not None:
        fields["arrived_ms"] = meta.arrived_ms
    if meta.source_time is not None:
        fields["source_time"] = meta.source_time
    if meta.arrival_ms is not None:
        fields["arrival_ms"] = meta.arrival_ms


def decode_meta(kind: EntryKind, fields: Any) -> Meta:
    """Returns the meta that :func:`encode_meta` was given.

    Raises:
        ValueError, TypeError, LookupError, AttributeError: it was given none of this kind.
    """
    meta = _DECODERS[kind](fields)
    for name, kinds in _TYPES[kind]:
        if not isinstance(getattr(meta, name), kinds):
            raise TypeError(f"{name} is {getattr(meta, name)!r}")
    return meta


def _fragment(fields: Mapping[str, Any]) -> FragmentMeta:
    return FragmentMeta(
        uow=fields["uow"],
        shard=fields["shard"],
        count=fields["count"],
        ordinals=_all(int, fields["ordinals"]),
        end_count=fields["end_count"],
        number=fields["number"],
        unit_kind=UnitKind(fields["unit_kind"]),
        causes=_all(str, fields["causes"]),
        offending=fields["offending"],
        digests=fields.get("digests", ""),
        repeated=fields.get("repeated", 0),
        misfits=tuple(fields.get("misfits", ())),
        tables=_all(str, fields.get("tables", ())),
        unsigned=_all(str, fields.get("unsigned", ())),
        scheme=fields.get("scheme"),
        fault=_fault(fields.get("fault")),
        without=_all(int, fields.get("without", ())),
        time=fields.get("time"),
        arrived_ms=fields.get("arrived_ms"),
        source_time=fields.get("source_time"),
        arrival_ms=fields.get("arrival_ms"),
    )


def _unit(fields: Mapping[str, Any]) -> UnitMeta:
    return UnitMeta(
        uow=fields["uow"],
        count=fields["count"],
        shards=_all(str, fields["shards"]),
        fragments=_all(int, fields["fragments"]),
        number=fields["number"],
        kind=UnitKind(fields["kind"]),
        conflict=fields["conflict"],
        cause=fields["cause"],
        offending=fields["offending"],
        fault=_fault(fields.get("fault")),
        tables=_all(str, fields.get("tables", ())),
        unsigned=_all(str, fields.get("unsigned", ())),
        scheme=fields.get("scheme"),
        without=_all(int, fields.get("without", ())),
        time=fields.get("time"),
        arrived_ms=fields.get("arrived_ms"),
        source_time=fields.get("source_time"),
        arrival_ms=fields.get("arrival_ms"),
    )


def _fault(word: str | None) -> Fault | None:
    return None if word is None else Fault(word)


def _status(fields: Mapping[str, Any]) -> StatusMeta:
    items = fields["outcomes"]
    _all(int, [item["tid"] for item in items])
    outcomes = [
        Outcome(item["tid"], _STATUSES[item["status"]], item["instance"], item["cause"], item.get("at_ms"))
        for item in items
    ]
    return StatusMeta(tuple(outcomes), fields["through"], _all(str, fields["requests"]))


def _position(fields: list[Any]) -> PositionMeta:
    shard, sequence, sub = fields
    return PositionMeta(shard, Position(int(sequence), _all(int, [sub])[0]))


def _control(fields: Mapping[str, Any]) -> ControlMeta:
    return ControlMeta(
        fields["what"], fields.get("since"), fields.get("count", 0), fields.get("key"), fields.get("forget", 0)
    )


def _refit(fields: Mapping[str, Any]) -> RefitMeta:
    tables = _all(str, fields["tables"])
    return RefitMeta(fields["unit"], fields["uow"], fields["count"], tables, fields["scheme"])


def _transaction(fields: Mapping[str, Any]) -> TransactionMeta:
    return TransactionMeta(fields["header"])


def _scheme(fields: Mapping[str, Any]) -> SchemeMeta:
    tables = {
        name: (_all(str, [digest])[0], _all(str, parents)) for name, (digest, parents) in fields["tables"].items()
    }
    return SchemeMeta(fields["scheme"], tables)


# What folds and views rely on: a broken index must not fail in the midst of a fold.
_TEXT_OR_NONE, _NUMBER_OR_NONE = (str, type(None)), (int, type(None))
_TYPES: Mapping[EntryKind, tuple[tuple[str, type | tuple[type, ...]], ...]] = {
    EntryKind.FRAGMENT: (
        ("uow", str), ("shard", str), ("count", int), ("end_count", _NUMBER_OR_NONE), ("number", _NUMBER_OR_NONE),
        ("offending", _TEXT_OR_NONE), ("digests", str), ("repeated", int), ("scheme", _TEXT_OR_NONE),
        ("time", _NUMBER_OR_NONE), ("arrived_ms", _NUMBER_OR_NONE), ("source_time", _NUMBER_OR_NONE),
        ("arrival_ms", _NUMBER_OR_NONE),
    ),
    EntryKind.UNIT: (
        ("uow", str), ("count", int), ("number", _NUMBER_OR_NONE), ("conflict", _NUMBER_OR_NONE),
        ("cause", _TEXT_OR_NONE), ("offending", _TEXT_OR_NONE), ("scheme", _TEXT_OR_NONE),
        ("time", _NUMBER_OR_NONE), ("arrived_ms", _NUMBER_OR_NONE), ("source_time", _NUMBER_OR_NONE),
        ("arrival_ms", _NUMBER_OR_NONE),
    ),
    EntryKind.STATUS: (("through", _NUMBER_OR_NONE),),
    EntryKind.POSITION: (("shard", str),),
    EntryKind.CONTROL: (
        ("what", str), ("since", _NUMBER_OR_NONE), ("count", int), ("key", _TEXT_OR_NONE), ("forget", int),
    ),
    EntryKind.SCHEME: (("scheme", str),),
    EntryKind.REFIT: (("unit", int), ("uow", str), ("count", int), ("scheme", _TEXT_OR_NONE)),
    EntryKind.TRANSACTION: (("header", int),),
}  # fmt: skip


def _all(kind: type[T], items: Iterable[Any]) -> tuple[T, ...]:
    """Returns items that are all of one kind; raises TypeError."""
    found = tuple(items)
    for item in found:  # all() would make a generator, and a batch has thousands of entries
        if not isinstance(item, kind):
            raise TypeError(f"{found!r} are not all of {kind.__name__}")
    return found


_DECODERS: Mapping[EntryKind, Callable[[Any], Meta]] = {
    EntryKind.FRAGMENT: _fragment,
    EntryKind.UNIT: _unit,
    EntryKind.STATUS: _status,
    EntryKind.POSITION: _position,
    EntryKind.CONTROL: _control,
    EntryKind.SCHEME: _scheme,
    EntryKind.REFIT: _refit,
    EntryKind.TRANSACTION: _transaction,
}
