"""The demo's settings file: sound for each kind of run, and a user's own file gives the pace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import javaproperties
import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.settings import examine
from kainite_demo.run_layout import RunLayout, RunOptions, SourceKind
from kainite_demo.settings_file import fleet_table, log_table, write_settings

PLAIN = RunOptions(seconds=30, shards=4, clients=8, scale=1, rate=100, seed=7, kill=False, keep=False)


def written(folder: Path, options: RunOptions) -> tuple[RunLayout, dict[str, str]]:
    source = SourceSlot("postgresql://postgres@/postgres?host=/tmp/s", "slot", "publication")
    layout = RunLayout(folder, source, "postgresql://postgres@/postgres?host=/tmp/t", "http://localhost:1")
    write_settings(layout, options)
    return layout, javaproperties.loads(layout.settings.read_text())


@pytest.mark.parametrize("source", SourceKind)
@pytest.mark.parametrize("fleet", [False, True])
def test_the_file_is_sound(source: SourceKind, fleet: bool, tmp_path: Path) -> None:
    layout, values = written(tmp_path, replace(PLAIN, source=source, fleet=fleet))

    found = examine(layout.settings)
    assert (found.problems, found.unknown, found.ignored) == ((), (), ())
    assert values["logTableName"] == log_table(layout)
    assert values.get("fleetTableName") == (fleet_table(layout) if fleet else None)
    assert ("extractorName" in values) is (source is not SourceKind.DSQL)


def test_a_users_file_gives_the_pace_and_the_run_gives_the_addresses(tmp_path: Path) -> None:
    given = tmp_path / "mine.properties"
    given.write_text("failoverTimeMillis = 9000\nstreamName = mine\nmaxRecords = 77\n")

    _, values = written(tmp_path, replace(PLAIN, settings=given))

    assert (values["failoverTimeMillis"], values["maxRecords"]) == ("9000", "77")
    assert values["streamName"] == tmp_path.name
