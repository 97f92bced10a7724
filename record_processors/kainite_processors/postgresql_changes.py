"""Turns the records of the extractors for PostgreSQL and MariaDB into deltas, with Amazon's library (amazon_kclpy)."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, Final

import click
import msgspec
import orjson

from kainite.processors.frame import Emitted, Record, refused, run
from kainite.processors.pieces import Ahead, PiecesMissingError
from kainite.processors.postgresql_texts import Conversions, as_json, conversions
from kainite.processors.row_pieces import WAIT_S, RecentPieces, split_row, tell_missing
from kainite.processors.searched_stream import no_stream, search_on

_NOTHING: Final = msgspec.Raw(b"")


class _Row(msgspec.Struct):
    """The part of a change record that says the row (:mod:`kainite.capture.postgresql.records`)."""

    types: msgspec.Raw
    key: dict[str, str | None]
    new: dict[str, str | None]
    old: dict[str, str | None] = {}


class _ChangeRecord(msgspec.Struct, gc=False):
    """Any record of the extractor; which fields it has says what it is."""

    uow: str
    ordinal: int | None = None
    relation: str | None = None
    operation: str | None = None
    types: msgspec.Raw = _NOTHING
    key: dict[str, str | None] | None = None
    new: dict[str, str | None] | None = None
    old: dict[str, str | None] = {}
    end: bool = False
    pieces: dict[str, Any] | None = None
    refused: str | None = None
    type: str | None = None


_RECORDS: Final = msgspec.json.Decoder(_ChangeRecord)
_ROWS: Final = msgspec.json.Decoder(_Row)


def deltas_of(record: Record, pieces: RecentPieces) -> list[Emitted]:
    """Returns the delta, or the end of a unit, of a change record; nothing for a piece of a row, which is remembered.

    Raises:
        msgspec.DecodeError: it is no JSON, or no change record.
        KeyError, ValueError: it is no change record.
        StreamError: the pieces of a row cannot be looked for now.
    """
    change: _ChangeRecord | _Row
    change = place = _RECORDS.decode(record.data)
    if place.type == "fragment":
        pieces.add(orjson.loads(record.data))
        return []
    if place.end:
        return [_end(orjson.loads(record.data))]
    if place.pieces is not None:
        try:
            change = _ROWS.decode(pieces.find(split_row(place.pieces, record.arrived)))
        except PiecesMissingError as error:
            tell_missing(f"{place.uow}, {place.operation} of {place.relation}", error)
            return []
    if place.refused is not None:
        return [refused(place.uow, _why(place), record)]
    if change.key is None or change.new is None or place.relation is None or place.ordinal is None:
        raise KeyError("a change without key, new, relation or ordinal")
    return [_delta(place, change.key, change.new, change.old, _conversions(bytes(change.types)))]


def _end(change: dict[str, Any]) -> Emitted:
    end = {name: change[name] for name in ("uow", "end", "count", "number")}
    return end | {name: change[name] for name in ("time",) if name in change}


def _delta(
    place: _ChangeRecord,
    key: dict[str, str | None],
    new: dict[str, str | None],
    old: dict[str, str | None],
    known: Conversions,
) -> Emitted:
    """Returns a delta; an update's row lacks the key columns that keep their values, unless it writes nothing else."""
    delta: Emitted = {"uow": place.uow, "table": place.relation, "op": place.operation, "ordinal": place.ordinal}
    if key:
        delta["key"] = as_json(key, known)
    if key and place.operation == "update":
        new = {name: text for name, text in new.items() if name not in key or key[name] != text} or new
    if new:
        delta["row"] = as_json(new, known)
    if old:
        delta["before"] = as_json(old, known)
    return delta


@lru_cache(maxsize=1000)
def _conversions(types: bytes) -> Conversions:
    """Returns the conversions of columns, given their types as a record has them: few tables have most of the changes.

    Raises:
        ValueError: they are no types.
    """
    return conversions(orjson.loads(types))


def _why(change: _ChangeRecord) -> str:
    if change.relation is None:
        return str(change.refused)
    return f"a change ({change.operation}) of {change.relation} that cannot be carried: {change.refused}"


@click.command()
@click.option("--stream", help="The stream's name: where a row came in pieces, a fresh process reads them from it.")
@click.option("--region", help="The stream's region.")
@click.option("--endpoint", metavar="URL", help="Kinesis's address, where it is not AWS's own.")
def main(stream: str | None, region: str | None, endpoint: str | None) -> None:
    """Turns the change records of kainite-extract-postgresql into deltas, for one shard, under kainite run."""
    elsewhere = Ahead(search_on(stream, region, endpoint, WAIT_S)).find if stream else no_stream
    run(partial(deltas_of, pieces=RecentPieces(elsewhere)))


if __name__ == "__main__":
    main()
