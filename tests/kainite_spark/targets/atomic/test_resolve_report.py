"""What ``kainite apply resolve`` shows and does."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.settings.assignment import TableAssignment
from kainite.store.memory import MemoryStore
from kainite_spark.targets.atomic.resolve_report import resolve
from kainite_spark.targets.atomic.target import AtomicTarget
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


class Away:
    def prepared(self, prefix: str) -> None:
        raise TargetUnavailableError("no answer")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_target_that_is_away_is_named_and_the_others_are_finished(
    world: AtomicWorld, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    world.store.decide("0", str(NAME), committed=True)
    away: Any = Away()
    there, world.targets["shop"] = world.targets["shop"], away
    assert resolve(world.target(), LEDGER, by_log=True, as_json=as_json) == 1
    told = capsys.readouterr().out
    assert "target.shop may have more of it, and does not say: no answer" in " ".join(told.split())
    assert "no transaction is left" not in told
    world.targets["shop"] = there
    assert (world.rows("shop"), world.rows("crm")) == ({}, {1: 1})
    assert resolve(world.target(), LEDGER, by_log=True, as_json=as_json) == 0
    assert world.rows("shop") == {1: 1}


def test_a_target_that_was_taken_out_with_a_decided_part_is_named(
    world: AtomicWorld, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Shows the decision is kept until the target is back, and then finishes what was left there."""
    world.store.decide("0", str(NAME), committed=True, targets=("shop", "crm"))
    whole = world.target()
    without = AtomicTarget({"shop": world.targets["shop"]}, TableAssignment((("shop", ()),)), whole.decisions)
    without.raise_generation(LEDGER, 2)
    assert [record.getMessage() for record in caplog.records].count(
        "a target that was taken out may lack what is decided as committed"
    ) == 1
    without.trim(Fence(LEDGER, 2, 1), 0)
    assert resolve(without, LEDGER, by_log=True, as_json=False) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "target.crm is not in the settings file, and 1 transaction," in told
    assert "put target.crm back into the settings file" in told
    whole.raise_generation(LEDGER, 3)
    assert (world.rows("shop"), world.rows("crm"), world.left()) == ({1: 1}, {1: 1}, [])
    whole.trim(Fence(LEDGER, 3, 1), 0)
    assert whole.decisions.all() == {}
    assert resolve(whole, LEDGER, by_log=False, as_json=False) == 0
