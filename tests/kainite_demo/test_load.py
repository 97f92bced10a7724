"""The load of a run: pgbench to its end, and what ends the run before. Short programs stand in for the parts."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from kainite.base.errors import DemoError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.log.format.entry import Batch, Entry, EntryKind, UnitMeta
from kainite.store.memory import MemoryStore
from kainite_demo.json_lines import JsonLinesFile
from kainite_demo.load import Load
from kainite_demo.log_watch import LogWatch
from kainite_demo.monitor import RunMonitor
from kainite_demo.processes import Process
from kainite_demo.progress import Display
from kainite_demo.run_layout import RunOptions

OPTIONS = RunOptions(seconds=1, shards=1, clients=1, scale=1, rate=10, seed=1, kill=False, keep=False)
RUNS, ENDS = "import time; time.sleep(600)", "pass"
PARTS = {"daemon": RUNS, "apply job": RUNS, "extractor": RUNS, "pgbench": ENDS}


class LoadWorld:
    def __init__(self, folder: Path) -> None:
        self.store = MemoryStore()
        self.folder = folder
        self.processes: dict[str, Process] = {}

    def load(self, **parts: str) -> Load:
        """Returns a load whose parts are programs in Python, all running but pgbench."""
        programs = {**PARTS, **{name.replace("_", " "): program for name, program in parts.items()}}
        self.processes = {
            name: Process(name, [sys.executable, "-c", program], self.folder, os.environ)
            for name, program in programs.items()
        }
        for name, process in self.processes.items():
            if name != "pgbench":
                process.start()
        monitor = RunMonitor(JsonLinesFile(self.folder / "journal"), LogWatch(self.store, "0"))
        return Load(OPTIONS, self.processes, monitor, Display(Console(file=io.StringIO())))

    def close(self) -> None:
        for process in self.processes.values():
            process.stop(0.0)


@pytest.fixture
def load_world(tmp_path: Path) -> Iterator[LoadWorld]:
    world = LoadWorld(tmp_path)
    yield world
    world.close()


@pytest.mark.usefixtures("target")
def test_without_transactions_a_run_ends_with_pgbench(load_world: LoadWorld, source: SourceSlot) -> None:
    load = load_world.load()

    assert load.carry(source.url) >= 0.0
    assert load.standing is not None
    assert (load.standing.made, load.kills.total()) == (0, 0)


def test_a_part_that_ends_ends_the_run(load_world: LoadWorld) -> None:
    load = load_world.load(apply_job="raise SystemExit(3)", pgbench=RUNS)

    with pytest.raises(DemoError, match="the apply job ended with status 3"):
        load.carry("unused")


def test_pgbench_must_not_fail(load_world: LoadWorld) -> None:
    with pytest.raises(DemoError, match="the pgbench ended with status 1"):
        load_world.load(pgbench="raise SystemExit(1)").carry("unused")


def test_a_unit_that_failed_ends_the_run_with_its_cause(load_world: LoadWorld) -> None:
    malformed = Entry(EntryKind.UNIT, UnitMeta("a", 0, cause="invalid JSON"))
    load_world.store.put_batch("0", Batch(0, 1, 0, (malformed,)), "nonce")

    with pytest.raises(DemoError, match="unit 0 was not applied: invalid JSON"):
        load_world.load(pgbench=RUNS).carry("unused")
