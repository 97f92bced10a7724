"""A run's figures: from the extractor's journal, the log and the target."""

from __future__ import annotations

import time
from pathlib import Path

import orjson
import pytest

from kainite.base.errors import DemoError
from kainite.store.memory import MemoryStore
from kainite_demo.json_lines import JsonLinesFile
from kainite_demo.log_watch import LogWatch
from kainite_demo.monitor import RunMonitor
from support.pgbench_databases import ACCOUNT, BRANCH, TELLER, WHOLE, execute
from support.waiting import eventually


def monitor(journal: Path, *, ends: bool = True) -> RunMonitor:
    return RunMonitor(JsonLinesFile(journal), LogWatch(MemoryStore(), "0"), ends=ends)


def commit(journal: Path, *units: tuple[str, int, int]) -> None:
    with journal.open("ab") as file:
        file.write(orjson.dumps({"commits": units}) + b"\n")


@pytest.mark.parametrize(("ends", "records"), [(True, 7), (False, 5)])
def test_a_unit_in_the_journal_is_captured_once(tmp_path: Path, ends: bool, records: int) -> None:
    run = monitor(tmp_path / "journal", ends=ends)
    commit(tmp_path / "journal", ("a", 1_000_000, 2), ("b", 2_000_000, 3))
    assert run.poll(0).captured == 2
    commit(tmp_path / "journal", ("b", 2_000_000, 3))

    figures = run.poll(4)

    assert (figures.captured, figures.kills, run.records) == (2, 4, records)
    assert run.committed_us == {"a": 1_000_000, "b": 2_000_000}
    assert run.done == {"daemon": 0, "apply job": 0, "extractor": 2}


def test_the_oldest_unit_that_is_not_applied_tells_how_far_the_target_is_behind(tmp_path: Path) -> None:
    run = monitor(tmp_path / "journal")
    assert run.poll(0).behind == 0.0
    commit(tmp_path / "journal", ("a", int((time.time() - 100) * 1e6), 1))

    assert 100 <= run.poll(0).behind < 160


def test_what_is_applied_is_seen_in_the_target(tmp_path: Path, target: str) -> None:
    execute(target, BRANCH, TELLER, ACCOUNT)
    run = monitor(tmp_path / "journal")
    with run.watching(target):
        execute(target, *WHOLE)
        eventually(lambda: run.poll(0).applied == 1)

    assert run.poll(0).snapshots > 0


def test_a_torn_transaction_ends_the_run(tmp_path: Path, target: str) -> None:
    execute(target, BRANCH, TELLER, ACCOUNT)
    run = monitor(tmp_path / "journal")

    def look() -> bool:
        run.poll(0)
        return False

    with run.watching(target):
        execute(target, WHOLE[0])
        with pytest.raises(DemoError, match="torn"):
            eventually(look)
