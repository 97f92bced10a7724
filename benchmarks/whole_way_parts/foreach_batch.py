"""The script that is written today: Structured Streaming, and in ``foreachBatch`` upserts table by table, no units.

``foreach_batch.py FOLDER URL TABLES`` reads files of JSON lines, one file a micro-batch: a table's name, and a row as
JSON, in the order of the source. TABLES is JSON: each table's key, parents first. It keeps the last row of each key,
and commits a micro-batch at once. It prints the seconds from the first micro-batch's beginning to the last commit.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import psycopg
from pyspark.sql import DataFrame, SparkSession


def main() -> None:
    folder, url, tables = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    began: list[float] = []
    connection = psycopg.connect(url)

    def upsert(batch: DataFrame, _: int) -> None:
        began.append(time.monotonic())
        latest: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {table: {} for table in tables}
        for line in batch.collect():
            table, row = line["table"], json.loads(line["row"])
            key = tuple(row[column] for column in tables[table])
            latest[table][key] = {**latest[table].get(key, {}), **row}
        for table, rows in latest.items():
            _write(connection, table, tables[table], list(rows.values()))
        connection.commit()

    stream = spark.readStream.schema("table string, row string").option("maxFilesPerTrigger", 1).json(folder)
    query = stream.writeStream.foreachBatch(upsert).trigger(availableNow=True).start()
    query.awaitTermination()
    print(time.monotonic() - began[0])
    spark.stop()


def _write(connection: psycopg.Connection, table: str, key: list[str], rows: list[dict[str, Any]]) -> None:
    """Upserts rows; deltas that lack columns update rows that are there."""
    for columns in {tuple(row) for row in rows}:
        chosen = [[row[column] for column in columns] for row in rows if tuple(row) == columns]
        marks = ", ".join(["%s"] * len(columns))
        others = [column for column in columns if column not in key]
        if set(columns) == _columns(connection, table):
            changed = ", ".join(f"{column} = excluded.{column}" for column in others)
            sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
            sql += f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"
        else:
            assigned = ", ".join(f"{column} = d.{column}" for column in others)
            same = " AND ".join(f"t.{column} = d.{column}" for column in key)
            sql = f"UPDATE {table} AS t SET {assigned} FROM (VALUES ({marks})) AS d ({', '.join(columns)}) WHERE {same}"
        connection.cursor().executemany(sql, chosen)


def _columns(connection: psycopg.Connection, table: str) -> set[str]:
    found = connection.execute("SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0", [table])
    return {name for (name,) in found}


if __name__ == "__main__":
    main()
