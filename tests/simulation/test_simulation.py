"""The simulator itself: fixed seeds hold what is promised, a seed is repeatable, mutations are found."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from simulation.aims import AIMS
from simulation.faults import chance
from simulation.mutation import Mutation
from simulation.mutations import MUTATIONS, RARE
from simulation.people import change_script
from simulation.replay import Replay
from simulation.scenario import scenario
from simulation.schema import Change, Reference, SourceTable, Tables
from simulation.source import Database, Row, Source, Style, Transaction, Write
from simulation.tested import TESTED, ShownByTest

TESTS = Path(__file__).parents[1]


def simulate(*arguments: str) -> str:
    """Runs the simulator in a process of its own: it replaces clocks and threads, and needs a fixed hash seed."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "simulation", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


FIXED = (
    51, 60, 71, 80, 160, 237, 275, 902291, 5000079, 5002990, 5003672, 5004043, 10004435,
    20, 53, 65, 77, 104, 117, 123, 124, 128, 162, 171, 233, 271, 280, 282, 295,
)  # fmt: skip
"""Some seeds that have found something; then those that have most pairs of kinds of faults, settings and styles: more
of them than the first 47 seeds have."""

SET_BACK = (1, 5, 21)
"""Seeds in which a target that is set back is refused and adopted."""

TWO_TARGETS = (0, 1, 2, 4, 7, 9)
"""Seeds in which one of two targets is away, refuses units or loses its jobs."""

ATOMIC = (0, 1, 2, 3, 5, 8)
"""Seeds in which two targets commit together, with tasks that stand still between the steps."""

TWO_LOGS = (0, 1, 3, 5)
"""Seeds in which two logs write into one target; in all but 3 a settings file names the other one's tables at first."""

PROGRAMS = range(12)
"""Seeds of programs on the log."""

LOADS = (1, 4, 12)
"""Seeds of loads: all of a target, of single tables, and one that is added; with killed and frozen processes."""

EXTRACTOR = (2, 6, 8, 9, 16, 45, 190, 252)
"""Seeds of an extraction: the later ones have a second one, which found that a slot was looked at too early."""

REFUSED = (0, 1, 2, 3, 6, 7)
"""Seeds of an extraction whose source, slot or offset is one that nobody may go on with, of each kind."""

QUICK = (
    "bound of the backlog",
    "conflicting units on one instance",
    "turn of a numbered unit",
    "blocked behind failed",
    "a target that went back is refused",
    "a unit is committed when each target has it",
    "a table has one log",
    "targets that commit together prepare",
    "locks of an append",
    "an append is durable before it is told",
    "a lock failure names what is durable",
    "a unit before the copy is left out",
    "changes of a table that is loaded are held",
    "a range is copied under its own load",
    "a repair never puts an older value over a newer one",
    "a request that waited for too long",
    "an answer is put before its place is stored",
    "records that a call refuses are put again",
    "a slot is not beyond the offset",
    "an offset of another source",
)
"""Mutations that the first few seeds find, of several kinds."""


@pytest.mark.timeout(300)
def test_each_schedule_of_the_fixed_list_ends_as_promised() -> None:
    seeds = [argument for seed in FIXED for argument in ("--seed", str(seed))]
    assert f"{len(FIXED)} schedules" in simulate(*seeds, "--shrink", "0")


def test_each_schedule_of_programs_ends_as_promised() -> None:
    seeds = [argument for seed in PROGRAMS for argument in ("--seed", str(seed))]
    assert f"{len(PROGRAMS)} schedules" in simulate(*seeds, "--shrink", "0", "--aim", "programs")


def test_each_schedule_with_a_target_that_is_set_back_ends_as_promised() -> None:
    seeds = [argument for seed in SET_BACK for argument in ("--seed", str(seed))]
    assert f"{len(SET_BACK)} schedules" in simulate(*seeds, "--shrink", "0", "--aim", "target set back")


def test_each_schedule_with_two_targets_ends_as_promised() -> None:
    seeds = [argument for seed in TWO_TARGETS for argument in ("--seed", str(seed))]
    assert f"{len(TWO_TARGETS)} schedules" in simulate(*seeds, "--shrink", "0", "--aim", "two targets")


def test_each_schedule_with_targets_that_commit_together_ends_as_promised() -> None:
    seeds = [argument for seed in ATOMIC for argument in ("--seed", str(seed))]
    assert f"{len(ATOMIC)} schedules" in simulate(*seeds, "--shrink", "0", "--aim", "atomic commit")


@pytest.mark.timeout(300)
def test_each_schedule_with_two_logs_in_one_target_ends_as_promised() -> None:
    seeds = [argument for seed in TWO_LOGS for argument in ("--seed", str(seed))]
    assert f"{len(TWO_LOGS)} schedules" in simulate(*seeds, "--shrink", "0", "--aim", "two logs")


@pytest.mark.timeout(300)
def test_each_schedule_of_loads_ends_as_promised() -> None:
    seeds = [argument for seed in LOADS for argument in ("--seed", str(seed))]
    assert f"{len(LOADS)} schedules" in simulate(*seeds, "--shrink", "0", "--aim", "loads")


@pytest.mark.timeout(300)
def test_each_schedule_with_a_table_that_is_given_up_ends_as_promised() -> None:
    assert "2 schedules" in simulate("--seed", "3", "--seed", "11", "--shrink", "0", "--aim", "tables given up")


@pytest.mark.timeout(300)
def test_each_schedule_with_a_load_that_is_left_or_a_late_copy_ends_as_promised() -> None:
    assert "1 schedules" in simulate("--seed", "1", "--shrink", "0", "--aim", "loads left")
    assert "1 schedules" in simulate("--seed", "3", "--shrink", "0", "--aim", "late copies")


@pytest.mark.timeout(300)
def test_each_schedule_with_repairs_ends_as_promised() -> None:
    assert "2 schedules" in simulate("--seed", "0", "--seed", "4", "--shrink", "0", "--aim", "repairs")


def test_each_schedule_with_hosts_that_refuse_each_other_ends_as_promised() -> None:
    """Shows members that fenced each other for ever, none of which ever had loaded the log."""
    assert "2 schedules" in simulate("--seed", "10002410", "--seed", "1", "--shrink", "0", "--aim", "refused for good")


@pytest.mark.timeout(300)
def test_each_schedule_of_an_extraction_ends_as_promised() -> None:
    for aim, some in (("extractor", EXTRACTOR), ("extractor refuses", REFUSED)):
        seeds = [argument for seed in some for argument in ("--seed", str(seed))]
        assert f"{len(some)} schedules" in simulate(*seeds, "--shrink", "0", "--aim", aim)


@pytest.mark.timeout(300)
def test_a_history_of_thousands_of_units_ends_as_promised() -> None:
    assert "1 schedules" in simulate("--seed", "2", "--shrink", "0", "--aim", "thousands")


@pytest.mark.timeout(300)
def test_mutations_are_found() -> None:
    assert f"{len(QUICK)} mutations in" in simulate("--mutations", *QUICK)


@pytest.mark.parametrize("mutation", [*MUTATIONS, *RARE], ids=lambda mutation: mutation.name)
def test_the_place_of_each_mutation_is_there(mutation: Mutation) -> None:
    with mutation.off():
        assert next(mutation.seeds()) >= 0


@pytest.mark.parametrize("tested", TESTED, ids=lambda tested: tested.mutation.name)
def test_the_place_and_the_test_of_each_safeguard_are_there(tested: ShownByTest) -> None:
    path, *_, name = tested.test.split("::")
    assert f"def {name.partition('[')[0]}(" in (TESTS.parent / path).read_text()
    with tested.mutation.off():
        pass


def test_a_safeguard_that_is_off_fails_its_test() -> None:
    quick = next(tested for tested in TESTED if tested.mutation.name == "generation of an owner that welcomes")
    assert quick.is_noticed()


def test_a_seed_means_the_same_each_time() -> None:
    assert scenario(7) == scenario(7)
    assert all(scenario(7, aim) == scenario(7, aim) for aim in AIMS)
    assert chance(7, "a") == chance(7, "a")
    assert chance(7, "a") != chance(7, "b")


@pytest.mark.parametrize("seed", range(20))
def test_a_generated_history_leads_from_nothing_to_the_sources_state(seed: int) -> None:
    style = Style(True, True, befores=True, cascades_told=seed % 2 == 0, rich=seed % 3 > 0, spelled=seed % 5 == 0)
    changes = (Change("column", 3, 0.0), Change("table", 5, 0.0), Change("key", 8, 0.0)) if seed % 2 else ()
    source = Source(Random(seed), 20, style, changes)
    target = Database(source.tables)
    for transaction in source.history:
        for write in transaction.writes:
            target.write(write)
    assert {name: target.rows(table) for name, table in source.tables.items()} == source.state


@pytest.mark.parametrize("seed", range(10))
def test_the_targets_tables_end_up_as_the_sources(seed: int) -> None:
    changes = (Change("column", 3, 0.0), Change("table", 5, 0.0), Change("key", 8, 0.0))
    source = Source(Random(seed), 10, Style(True, True, befores=True, cascades_told=False, rich=True), changes)
    target = sqlite3.connect(":memory:", isolation_level=None)
    target.executescript(source.ddl())
    for change in changes:
        target.executescript(change_script(source.tables, change))
    for table in source.tables.values():
        columns = {row[1] for row in target.execute(f"PRAGMA table_info({table.name})")}
        references = target.execute(f"PRAGMA foreign_key_list({table.name})").fetchall()
        assert columns == set(table.columns(100))
        assert {(row[3], row[2]) for row in references} == {(r.column, r.parent) for r in table.references}


FAMILY: Tables = {
    "parent": SourceTable("parent", unique=True),
    "child": SourceTable("child", references=(Reference("p", "parent"),)),
}


def write(table: str, op: str, id: int, **new: int | None) -> Write:
    key: Row = {"id": id}
    return Write(table, op, key, {**key, **new} if op == "insert" else {**new}, {})


BEGIN = (write("parent", "insert", 1, code=7), write("child", "insert", 1, p=1))
CHILD_LAST = (write("parent", "delete", 1), write("child", "delete", 1))
TWO_OF_ONE_ROW = (
    write("parent", "insert", 2, code=7),
    write("parent", "update", 2, code=8),
    write("parent", "delete", 1),
)
HALF = (write("child", "delete", 1), write("parent", "update", 2, v=1))
OTHER_HALF = (write("parent", "delete", 1), write("parent", "insert", 2))


def replayed(
    *history: tuple[Write, ...], behind: tuple[int, ...] = (), conflicts: tuple[int, ...] = ()
) -> dict[str, list[Row]]:
    """Returns the rows after a history; the transactions of ``conflicts`` conflict with each other."""
    some = [
        Transaction(f"T-{number}", number, stands_for=number, writes=list(writes),
                    written={("row",)} if number in conflicts else set())
        for number, writes in enumerate(history, start=1)
    ]  # fmt: skip
    replay = Replay(FAMILY)
    try:
        replay.add(some, {one.number: one for one in some}, behind)
        return {name: list(replay.database.rows(table).values()) for name, table in FAMILY.items()}
    finally:
        replay.close()


def test_what_is_behind_a_discarded_transaction_may_be_made_in_another_order() -> None:
    assert replayed(BEGIN, CHILD_LAST, behind=(2,)) == {"parent": [], "child": []}
    assert replayed(BEGIN, CHILD_LAST[:1], CHILD_LAST[1:], behind=(2, 3)) == {"parent": [], "child": []}
    left = {"parent": [{"id": 2, "code": 8}], "child": []}
    assert replayed(BEGIN, CHILD_LAST[1:], TWO_OF_ONE_ROW, behind=(3,)) == left


def test_a_child_that_has_not_left_its_parent_may_be_changed_before_the_parent_goes() -> None:
    tables = {**FAMILY, "child": SourceTable("child", references=(Reference("p", "parent", on_delete="CASCADE"),))}
    some = [
        Transaction("T-1", 1, stands_for=1, writes=list(BEGIN), written={("parent",), ("child",)}),
        Transaction("T-3", 3, stands_for=3, writes=[write("parent", "delete", 1)], written={("parent",)}),
        Transaction("T-4", 4, stands_for=4, writes=[write("child", "update", 1, p=None, v=7)], written={("child",)}),
    ]
    replay = Replay(tables)
    try:
        replay.add(some, {one.number: one for one in some}, behind=(3, 4))
        assert list(replay.database.rows(tables["child"]).values()) == [{"id": 1, "v": 7}]
    finally:
        replay.close()


OWNED: Tables = {
    "parent": SourceTable("parent"),
    "child": SourceTable("child", references=(Reference("p", "parent", on_delete="CASCADE"),)),
    "toy": SourceTable("toy", references=(Reference("p", "child", on_delete="CASCADE"),)),
    "guest": SourceTable("guest", references=(Reference("p", "parent", on_update="SET NULL"),)),
}


def deleted(table: str, id: int, **old: int) -> Write:
    return Write(table, "delete", {"id": id}, {}, {"id": id, **old})


@pytest.mark.parametrize(
    ("missing", "told", "passes"),
    [
        pytest.param(deleted("child", 9, p=1), True, True, id="its parent goes"),
        pytest.param(deleted("child", 9, p=2), True, False, id="another parent goes"),
        pytest.param(deleted("child", 9, p=2), False, True, id="nobody knows which parent it had"),
        pytest.param(deleted("child", 9), True, False, id="without a parent"),
        pytest.param(deleted("toy", 9, p=5), True, True, id="the parent of a parent goes"),
        pytest.param(deleted("guest", 9, p=1), True, False, id="another action"),
        pytest.param(write("child", "update", 9, v=1), True, False, id="an update"),
    ],
)
def test_only_what_a_cascade_of_the_same_transaction_reaches_may_be_gone(
    missing: Write, told: bool, passes: bool
) -> None:
    writes = [missing, deleted("parent", 1)]
    some = [
        Transaction("T-1", 1, stands_for=1, writes=[write("parent", "insert", 1)]),
        Transaction("T-2", 2, stands_for=2, writes=writes),
    ]
    for behind in ((), (2,)):
        replay = Replay(OWNED, told=told)
        taken = contextlib.nullcontext() if passes and behind else pytest.raises(sqlite3.IntegrityError)
        with contextlib.closing(replay), taken:
            replay.add(some, {one.number: one for one in some}, behind)


@pytest.mark.parametrize(
    ("history", "behind", "conflicts"),
    [
        pytest.param((BEGIN, CHILD_LAST), (), (), id="nothing is discarded"),
        pytest.param((BEGIN, CHILD_LAST[:1], CHILD_LAST[1:]), (3,), (), id="not behind"),
        pytest.param((BEGIN, CHILD_LAST[:1], CHILD_LAST[1:]), (2, 3), (2, 3), id="conflicts keep their order"),
        pytest.param((BEGIN, CHILD_LAST[:1]), (2,), (), id="never taken"),
        pytest.param((BEGIN, (write("parent", "update", 2, v=1), write("parent", "insert", 2))), (2,), (),
                     id="changes of one row keep their order"),
        pytest.param((BEGIN, HALF, OTHER_HALF), (2, 3), (), id="each is whole"),
    ],
)  # fmt: skip
def test_a_history_that_no_target_takes_in_order_is_refused(
    history: tuple[tuple[Write, ...], ...], behind: tuple[int, ...], conflicts: tuple[int, ...]
) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        replayed(*history, behind=behind, conflicts=conflicts)
