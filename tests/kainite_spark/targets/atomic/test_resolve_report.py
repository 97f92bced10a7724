"""What ``kainite apply resolve`` shows and does."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kainite.store.memory import MemoryStore
from kainite_spark.targets.atomic.resolve_report import resolve
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.preparing import TransactionName, gid_of
from support.atomic_world import LEDGER, AtomicWorld
from support.several_world import contact, item
from support.stores import Database

NAME = TransactionName(1, 1, "a")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[AtomicWorld]:
    """Gives targets in which a transaction is left prepared."""
    databases = {}
    for name in ("shop", "crm"):
        path = tmp_path / f"{name}.db"
        sqlite3.connect(path).close()
        databases[name] = Database(f"sqlite:///{path}")
    with closing(AtomicWorld(MemoryStore(), databases)) as made:
        fence = Fence(LEDGER, 1, 1)
        made.target().raise_generation(LEDGER, 1)
        made.target().begin_micro_batch(fence)
        for name, delta in (("shop", item(1, 1)), ("crm", contact(1, 1))):
            with closing(made.targets[name].connect()) as session:
                session.prepare(fence, (Unit(1, "T-1", (delta,)),), gid_of(LEDGER, name, NAME))
        yield made


def test_what_is_left_is_shown_with_what_each_choice_does(
    world: AtomicWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert resolve(world.target(), LEDGER, by_log=False, as_json=False) == 1
    shown = capsys.readouterr().out
    assert "COMMIT PREPARED" in shown
    assert "never applied in the other targets" in shown
    assert len(world.left()) == 2
    assert world.target().decisions.all() == {}


@pytest.mark.parametrize(("decided", "word"), [(None, "none"), (True, "committed"), (False, "rolled back")])
def test_the_logs_decision_is_shown(
    world: AtomicWorld, capsys: pytest.CaptureFixture[str], decided: bool | None, word: str
) -> None:
    if decided is not None:
        world.store.decide("0", str(NAME), committed=decided)
    assert resolve(world.target(), LEDGER, by_log=False, as_json=True) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["target"], row["transaction"], row["decision"]) for row in rows] == [
        (name, gid_of(LEDGER, name, NAME), word) for name in ("shop", "crm")
    ]


@pytest.mark.parametrize("decided", [False, True])
def test_it_is_finished_as_the_log_has_decided(
    world: AtomicWorld, capsys: pytest.CaptureFixture[str], decided: bool
) -> None:
    if decided:
        world.store.decide("0", str(NAME), committed=True)
    assert resolve(world.target(), LEDGER, by_log=True, as_json=False) == 0
    counted = "1 committed, 0 rolled back" if decided else "0 committed, 1 rolled back"
    assert counted in capsys.readouterr().out
    assert world.rows("shop") == world.rows("crm") == ({1: 1} if decided else {})
    assert resolve(world.target(), LEDGER, by_log=True, as_json=True) == 0
