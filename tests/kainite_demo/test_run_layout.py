"""Which processes a run has, which of them it kills, and how each is called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite_demo.run_layout import (
    RunLayout,
    RunOptions,
    SourceKind,
    daemon_names,
    dsql_command,
    duties,
    extractor_command,
    load_command,
    processes,
    ready_events,
    victims,
)

PLAIN = RunOptions(seconds=30, shards=4, clients=8, scale=1, rate=100, seed=7, kill=True, keep=False)
DSQL = replace(PLAIN, source=SourceKind.DSQL)
MARIADB = replace(PLAIN, source=SourceKind.MARIADB)
FLEET = replace(PLAIN, daemons=3, fleet=True)
LAYOUT = RunLayout(
    Path("/tmp/kd-x"), SourceSlot("postgresql://source", "slot", "publication"), "postgresql://t", "http://e"
)


@pytest.mark.parametrize(
    ("options", "parts", "killed"),
    [
        (PLAIN, {"daemon", "apply job", "extractor"}, {"daemon", "apply job", "extractor"}),
        (replace(PLAIN, kill=False), {"daemon", "apply job", "extractor"}, set()),
        (replace(PLAIN, daemons=2), {"daemon", "daemon 2", "apply job", "extractor"},
         {"daemon", "daemon 2", "apply job", "extractor"}),
        (DSQL, {"daemon", "apply job", "extractor"}, {"daemon", "apply job"}),
        (MARIADB, {"daemon", "apply job", "extractor"}, {"daemon", "apply job", "extractor"}),
        (FLEET, {"daemon", "daemon 2", "daemon 3"}, {"daemon", "daemon 2", "daemon 3"}),
        (replace(FLEET, source=SourceKind.DSQL), {"daemon", "daemon 2", "daemon 3", "extractor"},
         {"daemon", "daemon 2", "daemon 3"}),
    ],
)  # fmt: skip
def test_parts_and_victims(options: RunOptions, parts: set[str], killed: set[str]) -> None:
    assert set(ready_events(options)) == parts
    assert set(victims(options)) == killed
    assert set(processes(LAYOUT, options)) == {"pgbench", "console", *parts}
    assert set(daemon_names(options)) <= parts


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (PLAIN, []),
        (FLEET, ["log", "extract", "apply"]),
        (replace(FLEET, source=SourceKind.MARIADB), ["log", "extract", "apply"]),
        (replace(FLEET, source=SourceKind.DSQL), ["log", "apply"]),
    ],
)
def test_a_fleet_starts_all_but_what_stands_in_for_a_service(options: RunOptions, expected: list[str]) -> None:
    assert [str(duty) for duty in duties(options)] == expected


def test_the_extractor_is_told_where_to_read_and_where_to_write() -> None:
    words = extractor_command(LAYOUT)

    assert words[1:] == [
        *("--source", "postgresql://source", "--slot", "slot", "--publication", "publication"),
        *("--journal", "/tmp/kd-x/extractor.journal"),
    ]


def test_mariadb_has_an_extractor_and_a_load_of_its_own() -> None:
    program, *words = extractor_command(LAYOUT, SourceKind.MARIADB)
    assert Path(program).name == "kainite-extract-mysql"
    assert words == ["--source", "postgresql://source", "--journal", "/tmp/kd-x/extractor.journal"]
    load = load_command("mariadb://source", MARIADB)
    assert load[1:3] == ["-m", "kainite_demo.mariadb_load"]
    options = dict(zip(load[3::2], load[4::2], strict=True))
    assert options == {
        "--source": "mariadb://source", "--clients": "8", "--seconds": "30", "--rate": "100", "--scale": "1",
        "--seed": "7",
    }  # fmt: skip


def test_dsql_reshards_in_the_middle_of_the_run() -> None:
    words = dsql_command(LAYOUT, DSQL)
    options = dict(zip(words[3::2], words[4::2], strict=True))

    assert (options["--stream"], options["--seed"], options["--reshard-after"]) == ("kd-x", "7", "10.0")


def test_the_names_of_a_run_are_its_folders() -> None:
    assert LAYOUT.name == "kd-x"
    assert {LAYOUT.settings.parent, LAYOUT.catalogue.parent, LAYOUT.journal.parent} == {LAYOUT.folder}
    assert LAYOUT.offset_file.path.parent == LAYOUT.folder
