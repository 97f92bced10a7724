"""The target has the source's tables and rows, and the extractor begins behind them."""

from __future__ import annotations

from pathlib import Path

import orjson
import psycopg
import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ledger import LoadState
from kainite.replicate.status import status_of
from kainite.uow.catalogue.file import read_catalogue
from kainite.uow.catalogue.reflection import reflect
from kainite_demo import pgbench
from kainite_demo.compare import compare
from kainite_demo.initial_copy import bring_rows, make_tables
from kainite_demo.run_layout import RunLayout, RunOptions, SourceKind
from kainite_demo.settings_file import LOG_PARTITION, log_table, write_settings
from support.pgbench_databases import execute

ROWS = (
    "INSERT INTO pgbench_branches VALUES (1, 0)",
    "INSERT INTO pgbench_tellers VALUES (1, 1, 0)",
    "INSERT INTO pgbench_accounts SELECT n, 1, 0, 'x' FROM generate_series(1, 2000) n",
)


@pytest.mark.parametrize("kind", [SourceKind.POSTGRESQL, SourceKind.DSQL])
def test_the_rows_are_there_and_the_extractor_begins_behind_them(
    kind: SourceKind,
    source: SourceSlot,
    postgres_server: str,
    postgres: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    execute(source.url, "DROP TABLE item, note")
    url = postgres_server.replace("/postgres?", f"/{source.slot}?")
    slot = SourceSlot(url, source.slot, "kainite_demo")
    layout = RunLayout(tmp_path, slot, postgres, "http://127.0.0.1:1")
    write_settings(layout, RunOptions(2, 4, 8, 1, 100, 1, kill=False, keep=False, source=kind))
    make_tables(layout, kind)
    execute(url, *ROWS)
    bring_rows(layout, kind)
    assert compare(url, postgres, pgbench.TABLES) == 2002
    assert read_catalogue(layout.catalogue) == reflect(postgres)
    begin = orjson.loads(layout.offset_file.path.read_bytes())["start"]
    with psycopg.connect(url) as connection:
        [(lsn,)] = connection.execute("SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s",
                                      [slot.slot]).fetchall()  # fmt: skip
    assert begin["lsn"] == lsn
    if kind is SourceKind.POSTGRESQL:
        with psycopg.connect(postgres) as connection:
            found = status_of(connection, f"{log_table(layout)}/{LOG_PARTITION}")
        assert (found.state, found.consistent) == (LoadState.LIVE, True)
