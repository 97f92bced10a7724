"""Turns the records of the extractors for PostgreSQL and MariaDB into deltas, with Amazon's library (amazon_kclpy)."""

from __future__ import annotations

from functools import partial

import click
import orjson

from kainite.processors.frame import Emitted, Json, Record, refused, run
from kainite.processors.pieces import Ahead, PiecesMissingError
from kainite.processors.postgresql_texts import as_json
from kainite.processors.row_pieces import WAIT_S, RecentPieces, split_row, tell_missing
from kainite.processors.searched_stream import no_stream, search_on


def deltas_of(record: Record, pieces: RecentPieces) -> list[Emitted]:
    """Returns the delta, or the end of a unit, of a change record; nothing for a piece of a row, which is remembered.

    Raises:
        ValueError: it is no JSON.
        KeyError: it is no change record.
        StreamError: the pieces of a row cannot be looked for now.
    """
    change = orjson.loads(record.data)
    if change.get("type") == "fragment":
        pieces.add(change)
        return []
    if change.get("end"):
        end = {name: change[name] for name in ("uow", "end", "count", "number")}
        return [end | {name: change[name] for name in ("time",) if name in change}]
    if "pieces" in change:
        try:
            change |= orjson.loads(pieces.find(split_row(change["pieces"], record.arrived)))
        except PiecesMissingError as error:
            tell_missing(f"{change['uow']}, {change['operation']} of {change['relation']}", error)
            return []
    if "refused" in change:
        return [refused(change["uow"], _why(change), record)]
    key, new = as_json(change["key"], change["types"]), as_json(change["new"], change["types"])
    old = as_json(change.get("old", {}), change["types"])
    delta = {"uow": change["uow"], "table": change["relation"], "op": change["operation"], "ordinal": change["ordinal"]}
    if key:
        delta["key"] = key
    if row := _row(change["operation"], key, new):
        delta["row"] = row
    if old:
        delta["before"] = old
    return [delta]


def _why(change: dict[str, Json]) -> str:
    if "relation" not in change:
        return str(change["refused"])
    return f"a change ({change['operation']}) of {change['relation']} that cannot be carried: {change['refused']}"


def _row(operation: str, key: dict[str, Json], new: dict[str, Json]) -> dict[str, Json]:
    """Drops the key columns whose values an update keeps, unless there is nothing else to write."""
    if operation != "update":
        return new
    return {name: value for name, value in new.items() if name not in key or key[name] != value} or new


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
