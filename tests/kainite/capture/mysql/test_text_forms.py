"""A query gives the very texts that the extractor makes from the binlog, for values of every type."""

from __future__ import annotations

import random
from contextlib import closing

import orjson
import pytest

from kainite.capture.mysql.snapshot_session import SnapshotSession
from kainite.capture.mysql.snapshot_tables import snapshot_tables
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from support.mariadb_source import Extraction, execute
from support.mariadb_values import MariadbType, types

pytestmark = pytest.mark.mariadb  # a snapshot of MySQL does not say its place in the binlog

NAMES = {f"v{number}": kind for number, kind in enumerate(types())}
KEYS = range(4)


def value(kind: MariadbType, chance: random.Random) -> str:
    return "NULL" if chance.random() < 0.1 else kind.value(chance)


def extracted(records: list[bytes]) -> dict[tuple[str, str], str | None]:
    """Returns the text of ``v`` by table and key."""
    changes = [record for record in map(orjson.loads, records) if "relation" in record]
    assert not [change for change in changes if "refused" in change]
    return {(change["relation"], change["key"]["id"]): change["new"]["v"] for change in changes}


def selected(url: str) -> dict[tuple[str, str], str | None]:
    """Returns the same by queries, as a load reads the rows."""
    found: dict[tuple[str, str], str | None] = {}
    with closing(MysqlSourceCatalogue(url)) as catalogue, closing(SnapshotSession(url)) as session:
        for table in snapshot_tables(catalogue, str(catalogue.value("SELECT database()")), ()):
            spellings = [column.form.spelling for column in table.copied]
            lines = b"".join(session.blocks(table.query("TRUE"), spellings)).decode().split("\n")[:-1]
            found |= {(table.name, line.split("\t")[0]): unescaped(line.split("\t")[1]) for line in lines}
    return found


def unescaped(text: str) -> str | None:
    """Returns a value of a line of COPY."""
    if text == "\\N":
        return None
    pieces = (piece.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r") for piece in text.split("\\\\"))
    return "\\".join(pieces)


def compare(database: str, seed: int) -> None:
    chance = random.Random(seed)
    execute(
        database, *(f"CREATE TABLE {name} (id int PRIMARY KEY, v {kind.type} NULL)" for name, kind in NAMES.items())
    )
    with Extraction(database) as extraction:
        rows = [
            f"INSERT INTO {name} VALUES ({key}, {value(kind, chance)})" for name, kind in NAMES.items() for key in KEYS
        ]
        execute(database, "BEGIN", *rows, "COMMIT")
        sent = extracted(extraction.until(1))
    queried = selected(database)
    differing = {place: (sent[place], queried.get(place)) for place in sent if sent[place] != queried.get(place)}
    assert {NAMES[table].type: pair for (table, _), pair in differing.items()} == {}, f"seed {seed}"
    assert queried.keys() == sent.keys()


def test_values_of_every_type(database: str) -> None:
    compare(database, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 20))
def test_many_values_of_every_type(database: str, seed: int) -> None:
    compare(database, seed)
