"""Loaders, sound and broken, under ``kainite conform --stage load``."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest

from kainite.base.markers import Batching
from kainite.conform import CaseVerdict, ConformOptions, ConformReport, run
from kainite.conform.cases.case import Stage
from kainite.conform.cases.samples import Samples
from kainite.conform.exchange.child_run import AnswerLimits
from kainite.settings import ChildProtocol, ChildSettings, MarkersSettings
from kainite.settings.loader_command import loader_command
from support.loaders import documented_loader, least_loader

BROKEN = Path(__file__).parents[3] / "children" / "broken" / "loader.py"


def tried(command: tuple[str, ...] | None, batching: Batching = Batching.SINGLE, *only: str) -> ConformReport:
    assert command is not None
    child = ChildSettings(command, protocol=ChildProtocol.MARKERS, markers=MarkersSettings(batching=batching))
    limits = AnswerLimits(timeout=60.0, slow=60.0)
    return run(ConformOptions(child, limits=limits, only=only, stage=Stage.LOAD))


def noted(report: ConformReport) -> dict[str, str]:
    return {result.name: result.text for result in report.results if result.verdict > CaseVerdict.PASS}


def test_the_documented_loader_passes(tmp_path: Path) -> None:
    database = tmp_path / "shop.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE conform (id INTEGER PRIMARY KEY, qty INTEGER)")
    assert noted(tried(loader_command(documented_loader(tmp_path, database)))) == {}


def test_the_least_loader_passes_and_what_it_does_without_is_noted(tmp_path: Path) -> None:
    report = tried(loader_command(least_loader(tmp_path, tmp_path / "book")))
    assert report.ok()
    assert noted(report).keys() == {"load", "fence"}
    assert "keeps no account" in noted(report)["load"]
    assert "without a fence" in noted(report)["fence"]


@pytest.mark.parametrize(
    ("fault", "case", "verdict", "said"),
    [
        ("none", "load", CaseVerdict.PASS, ""),
        ("none", "fence", CaseVerdict.PASS, ""),
        ("greets", "one-message", CaseVerdict.FAIL, "which is no answer of a loader"),
        ("claims all", "load", CaseVerdict.FAIL, "lists units as applied that it was not sent: [7010, 7011]"),
        ("forgets", "load", CaseVerdict.FAIL, "does not list [7010] as applied, though it has loaded them"),
        ("no account", "load", CaseVerdict.NOTE, "keeps no account"),
        ("no fence", "fence", CaseVerdict.NOTE, "without a fence"),
        ("none", "read-back", CaseVerdict.PASS, ""),
        ("keeps rows", "read-back", CaseVerdict.PASS, ""),
        ("forgets rows", "read-back", CaseVerdict.FAIL, 'does not have the row conform {"id": 7050}'),
        ("forgets columns", "read-back", CaseVerdict.FAIL, "lost the column 'qty' of conform"),
        ("rounds", "read-back", CaseVerdict.NOTE, "'qty' was loaded as 1 and came back as \"1.0\""),
        ("answers one row", "read-back", CaseVerdict.FAIL, "answered 1 keys with {}"),
        ("ends when asked for rows", "read-back", CaseVerdict.NOTE, "ended with status 1"),
        ("refuses", "load", CaseVerdict.NOTE, "answered 'bad': no such table: conform"),
    ],
)
def test_a_fault_of_a_loader_is_found(fault: str, case: str, verdict: CaseVerdict, said: str) -> None:
    (result,) = tried((sys.executable, "-S", str(BROKEN), fault), Batching.SINGLE, case).results
    assert result.verdict is verdict
    assert said in result.text


def test_rows_of_the_authors_own_are_read_back_and_changed_types_are_named(tmp_path: Path) -> None:
    database = tmp_path / "shop.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price REAL)")
    place = '"logPartition":"own/0","generation":1,"microBatch":1,"transactionId":1,"uow":"T-1"'
    delta = '{"table":"item","op":"insert","key":{"id":1},"row":{"id":1,"name":"é","price":"12345678901234567.89"}}'
    samples = Samples((f'{{"action":"load",{place},"deltas":[{delta}]}}'.encode(),), own=True)
    command = loader_command(documented_loader(tmp_path, database))
    assert command is not None
    child = ChildSettings(command, protocol=ChildProtocol.MARKERS)

    limits, only = AnswerLimits(60.0, 60.0), ("one-message", "records", "own-rows")
    report = run(ConformOptions(child, samples, limits, stage=Stage.LOAD, only=only))

    assert report.ok()
    assert "'price' was loaded as \"12345678901234567.89\" and came back as" in noted(report)["own-rows"]
    assert "'name'" not in noted(report)["own-rows"]
