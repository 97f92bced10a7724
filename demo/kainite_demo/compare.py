"""Compares source and target row by row: each table as ordered text from both, chunk by chunk.

The order is that of the primary key, or of all columns in a table without one, where equal rows are
interchangeable. Both servers sort and print at the same time: two million rows take a few seconds.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO

import psycopg

from kainite.base.errors import DemoError
from kainite_demo.mixed_compare import compare_alike
from kainite_demo.postgres_server import programs
from kainite_demo.reading import is_mariadb

_CHUNK = 1 << 20
_COLUMNS = """
    SELECT quote_ident(a.attname), a.attnum = ANY (coalesce(i.indkey::int2[], '{}'))
      FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
     WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped
     ORDER BY array_position(i.indkey::int2[], a.attnum), a.attnum"""


def compare(source: str, target: str, tables: Iterable[str]) -> int:
    """Compares tables in two databases.

    Args:
        source, target: connection URLs.
        tables: the tables' names, the same on both sides.

    Returns:
        The number of rows compared.

    Raises:
        DemoError: a table differs; the message shows the first rows that do.
    """
    alike = is_mariadb(source) or is_mariadb(target)
    return sum((compare_alike if alike else _compare_table)(source, target, table) for table in tables)


def _compare_table(source: str, target: str, table: str) -> int:
    query = _ordered(source, table)
    rows, before = 0, b""
    with _copy(source, query) as left, _copy(target, query) as right:
        while True:
            expected, found = left.read(_CHUNK), right.read(_CHUNK)
            if expected != found:
                raise DemoError(f"{table} differs: {_first_difference(before + expected, before + found)}")
            if not expected:
                return rows
            rows += expected.count(b"\n")
            before = expected[expected.rfind(b"\n") + 1 :]


def _ordered(url: str, table: str) -> str:
    """Returns the query for all columns by name, in the order of the key."""
    with psycopg.connect(url) as connection:
        columns = [(str(name), bool(in_key)) for name, in_key in connection.execute(_COLUMNS, [table])]
    names = sorted(name for name, _ in columns)
    key = [name for name, in_key in columns if in_key] or names
    return f"SELECT {', '.join(names)} FROM {table} ORDER BY {', '.join(key)}"


@contextmanager
def _copy(url: str, query: str) -> Iterator[IO[bytes]]:
    program = str(programs() / "psql")
    command = [program, "--no-psqlrc", "--quiet", "--command", f"COPY ({query}) TO STDOUT", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
        except BaseException:
            process.kill()
            raise
        errors = process.communicate()[1].decode(errors="replace").strip()
    if process.returncode:
        raise DemoError(f"reading for the comparison failed: {errors}")


def _first_difference(expected: bytes, found: bytes) -> str:
    lines = zip(_lines(expected), _lines(found), strict=False)
    left, right = next((pair for pair in lines if pair[0] != pair[1]), (None, None))
    return f"the source has {_shown(left)}, the target {_shown(right)}"


def _lines(data: bytes) -> list[bytes | None]:
    return [*data.splitlines(), None]


def _shown(line: bytes | None) -> str:
    return "no more rows" if line is None else repr(line.decode(errors="replace").split("\t"))
