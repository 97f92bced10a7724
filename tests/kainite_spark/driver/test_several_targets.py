"""Units of work in several targets, each with an apply job of its own."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import SettingsError, TargetUnavailableError
from kainite.log.format.entry import UnitStatus
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.loading import load_state
from kainite.settings import ApplySettings, Consistency, OnFailure
from kainite.store.memory import MemoryStore
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.several import merged, only
from kainite.uow.delta import Delta, Operation, UnitKind
from kainite.uow.signing import Signing
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.follower import LogFollower
from kainite_spark.driver.job import ApplyJob
from support.chaos import Fate, KilledError, MortalStore, MortalTarget
from support.inline_runner import InlineRunner
from support.loaders import documented_loader
from support.several_world import TARGETS, SeveralWorld, changed, contact, item, noting
from support.stores import Database


def file_database(path: Path) -> Database:
    sqlite3.connect(path).close()
    return Database(f"sqlite:///{path}")


def fresh(folder: Path) -> SeveralWorld:
    folder.mkdir(exist_ok=True)
    databases = {name: file_database(folder / f"{name}.db") for name in ("shop", "crm")}
    return SeveralWorld(MemoryStore(), databases)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SeveralWorld]:
    with closing(fresh(tmp_path / "world")) as made:
        yield made


@pytest.fixture(params=["postgresql mariadb", "postgresql sqlite", "mariadb exec"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SeveralWorld]:
    """Gives a world whose targets are of two kinds."""

    def opened(kind: str) -> Database:
        if kind in ("postgresql", "mariadb"):
            return Database(request.getfixturevalue("postgres" if kind == "postgresql" else kind))
        path = tmp_path / f"{kind}.db"
        plain = file_database(path)
        return Database(plain.url, documented_loader(tmp_path, path)) if kind == "exec" else plain

    shop, crm = request.param.split()
    with closing(SeveralWorld(MemoryStore(), {"shop": opened(shop), "crm": opened(crm)})) as made:
        yield made


class Away:
    """Shows it: a target that does not answer."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        raise TargetUnavailableError(f"{name}: nobody answers")


def test_each_target_gets_its_part_of_a_unit_once(servers: SeveralWorld) -> None:
    """Shows a unit is committed in the log when each target that has its tables has acknowledged it, and not before."""
    log = servers.log
    log.unit("both", *noting("both", item(1, 1), contact(1, 10)))
    log.unit("shop alone", *noting("shop alone", item(2, 2)))
    log.unit("crm alone", *noting("crm alone", contact(2, 20)))
    log.unit("later", *noting("later", changed("item", 1, 3), changed("contact", 1, 30)))
    servers.apply("shop")
    assert servers.shop.rows() == {1: 3, 2: 2}
    assert servers.crm.rows() == {}
    assert servers.statuses() == {
        "both": {"shop": "committed", "crm": "in progress"},
        "crm alone": {"crm": "in progress"},
        "later": {"shop": "committed", "crm": "in progress"},
    }
    servers.apply("shop")
    servers.apply("crm")
    servers.apply("crm")
    assert (servers.shop.rows(), servers.crm.rows()) == ({1: 3, 2: 2}, {1: 30, 2: 20})
    assert servers.shop.noted() == ["both", "later", "shop alone"]
    assert servers.crm.noted() == ["both", "crm alone", "later"]
    assert log.statuses() == {}


def test_a_target_that_is_away_holds_up_only_what_needs_it(world: SeveralWorld) -> None:
    """Shows: its units stay in the log over snapshots, truncations and starts, and are applied when it comes back."""
    for number in range(1, 31):
        world.log.unit(f"T-{number}", *noting(f"T-{number}", item(number), *([contact(number)] * (number % 3 == 0))))
        world.apply("shop")
        if number % 10 == 0:
            world.log.snapshot()
    assert len(world.shop.noted()) == 30
    assert sorted(world.statuses()) == sorted(f"T-{number}" for number in range(3, 31, 3))
    world.apply()
    assert len(world.crm.noted()) == 10
    assert len(world.shop.noted()) == 30
    assert world.log.statuses() == {}


def test_a_job_waits_for_its_target_alone(world: SeveralWorld) -> None:
    world.log.unit("both", *noting("both", item(1), contact(1)))
    away = world.job("crm", target=Away(world.crm.target))
    world.stop.set()
    away.run(once=True)
    world.stop.clear()
    world.apply("shop")
    assert world.statuses() == {"both": {"shop": "committed", "crm": "in progress"}}
    world.apply()
    assert world.log.statuses() == {}


def test_a_unit_that_one_target_refuses_fails_there_alone(world: SeveralWorld) -> None:
    """Shows it: the other target applies it; a retry tries it where it failed, and nowhere else."""
    log = world.log
    log.unit("bad", *noting("bad", item(1, -1), contact(1, 1)))
    log.unit("behind", *noting("behind", changed("item", 1, 2), changed("contact", 1, 2)))
    world.apply()
    assert world.statuses() == {
        "bad": {"shop": "failed", "crm": "committed"},
        "behind": {"shop": "blocked", "crm": "committed"},
    }
    unit = log.state.find("bad")
    assert unit is not None
    assert unit.cause is not None
    assert unit.cause.startswith("shop: ")
    assert log.statuses() == {"bad": UnitStatus.FAILED, "behind": UnitStatus.BLOCKED}
    world.shop.database.run("DROP TABLE item; CREATE TABLE item (id bigint PRIMARY KEY, v bigint);")
    assert log.ask("retry", "bad") == "ok"
    assert world.statuses()["bad"] == {"shop": "in progress", "crm": "committed"}
    world.apply()
    assert (world.shop.rows(), world.crm.rows()) == ({1: 2}, {1: 2})
    assert world.crm.noted() == ["bad", "behind"]
    assert log.statuses() == {}


def failed_in_both(world: SeveralWorld) -> None:
    """Applies a unit that both targets refuse, with another one behind it, and lets both take it from then on."""
    world.log.unit("bad", *noting("bad", item(1, -1), contact(1, -1)))
    world.log.unit("behind", *noting("behind", changed("item", 1, 2), changed("contact", 1, 2)))
    world.apply()
    assert world.statuses()["bad"] == {"shop": "failed", "crm": "failed"}
    for one, table in ((world.shop, "item"), (world.crm, "contact")):
        one.database.run(f"DROP TABLE {table}; CREATE TABLE {table} (id bigint PRIMARY KEY, v bigint);")


def test_a_retry_of_one_part_leaves_the_other_failed(world: SeveralWorld) -> None:
    """Shows it, also where the job begins anew behind the decision, and that the unit stays failed by the other one."""
    failed_in_both(world)
    assert world.log.ask("retry", "bad", "crm") == "ok"
    assert world.statuses()["bad"] == {"shop": "failed", "crm": "in progress"}
    world.apply()
    assert world.statuses() == {
        "bad": {"shop": "failed", "crm": "committed"},
        "behind": {"shop": "blocked", "crm": "committed"},
    }
    assert (world.shop.rows(), world.crm.rows()) == ({}, {1: 2})
    assert world.log.statuses()["bad"] is UnitStatus.FAILED
    assert world.log.ask("retry", "bad", "crm") == "refused", "it is committed there"
    assert world.log.ask("retry", "bad", "erp") == "refused", "there is no such part"
    assert world.log.ask("retry", "bad", "shop") == "ok"
    world.apply()
    assert (world.log.statuses(), world.shop.rows()) == ({}, {1: 2})
    assert world.shop.noted() == world.crm.noted() == ["bad", "behind"]


def test_a_running_job_hears_of_the_retry_of_its_part(world: SeveralWorld) -> None:
    failed_in_both(world)
    follower = LogFollower(world.store, "0", target="crm")
    other = LogFollower(world.store, "0", target="shop")
    follower.start()
    other.start()
    tid = world.log.state.find("bad")
    assert tid is not None
    assert world.log.ask("retry", "bad", "crm") == "ok"
    assert follower.poll()
    assert other.poll()
    assert (tid.tid in follower.backlog.failed, tid.tid in other.backlog.failed) == (False, True)


def test_a_discard_of_one_part_leaves_the_other_to_its_target(world: SeveralWorld) -> None:
    failed_in_both(world)
    assert world.log.ask("discard", "bad", "shop") == "ok"
    assert world.statuses()["bad"] == {"shop": "discarded", "crm": "failed"}
    assert world.log.ask("retry", "bad", "crm") == "ok"
    world.shop.database.run("INSERT INTO item (id, v) VALUES (1, 0);")
    world.apply()
    assert world.log.statuses() == {}
    assert (world.shop.noted(), world.crm.noted()) == (["behind"], ["bad", "behind"])


def test_a_part_that_has_not_failed_is_not_discarded_alone(world: SeveralWorld) -> None:
    world.log.unit("bad", *noting("bad", item(1, -1), contact(1, 1)))
    world.apply("shop")
    assert world.log.ask("discard", "bad", "crm") == "refused"
    assert world.statuses() == {"bad": {"shop": "failed", "crm": "in progress"}}


def test_a_failed_unit_is_discarded_where_it_is_not_applied(world: SeveralWorld) -> None:
    """Shows: the part that is committed stays; what another target may be applying is for its own job to discard."""
    log = world.log
    log.unit("bad", *noting("bad", item(1, -1), contact(1, 1)))
    world.apply("shop")
    assert world.statuses() == {"bad": {"shop": "failed", "crm": "in progress"}}
    assert log.ask("discard", "bad") == "asked"
    assert world.statuses() == {"bad": {"shop": "discarding", "crm": "discarding"}}
    world.apply("crm")
    world.apply("shop")
    assert log.statuses() == {}
    assert (world.shop.noted(), world.crm.noted()) == ([], [])

    log.unit("half", *noting("half", item(2, -1), contact(2, 1)))
    world.apply()
    assert log.ask("discard", "half") == "ok"
    assert log.statuses() == {}
    world.apply()
    assert (world.shop.noted(), world.crm.noted()) == ([], ["half"])


def test_a_failure_that_the_log_shows_after_a_retry_waits_for_another_one(world: SeveralWorld) -> None:
    """Shows else the log would show a unit as failed that a job tries, and a discard of it would be carried out at
    once."""
    log = world.log
    log.unit("bad", *noting("bad", item(1, -1), contact(1, -1)))
    world.apply("shop")
    world.job("crm").run(once=True)  # refused, and the owner has not copied that
    assert log.ask("retry", "bad") == "ok"
    assert world.statuses() == {"bad": {"shop": "in progress", "crm": "in progress"}}
    world.crm.database.run("DROP TABLE contact; CREATE TABLE contact (id bigint PRIMARY KEY, v bigint);")
    runner = InlineRunner(world.store, "0", world.crm.target)
    follower = world.job("crm", runner=runner)
    log.take_outcomes()
    follower.run(once=True)
    assert runner.ran == []
    assert world.statuses() == {"bad": {"shop": "in progress", "crm": "failed"}}
    assert log.ask("retry", "bad") == "ok"
    world.apply("crm")
    assert world.crm.noted() == ["bad"]


def test_a_correction_takes_the_place_of_a_unit_that_failed_in_both_targets(world: SeveralWorld) -> None:
    log = world.log
    log.unit("bad", *noting("bad", item(1, -1), contact(1, -1)))
    world.apply()
    log.unit("good", *noting("good", item(1, 1), contact(1, 1)), kind=UnitKind.CORRECTION)
    world.apply()
    assert (world.shop.noted(), world.crm.noted()) == (["good"], ["good"])
    assert log.statuses() == {}


def test_a_unit_is_not_retried_while_one_target_may_have_its_correction(world: SeveralWorld) -> None:
    """Shows: the correction failed in one target, and is applied in the other, which has not told it: else the failed
    unit would be applied there over its correction."""
    log = world.log
    log.unit("rows", item(1), contact(1))
    world.apply()
    log.unit("bad", changed("item", 1, -1), changed("contact", 1, -1))
    world.apply()
    log.unit("good", changed("item", 1, 7), changed("contact", 1, -7), kind=UnitKind.CORRECTION)
    world.apply("crm")
    fate = Fate(on="before put_batch")
    with pytest.raises(KilledError):
        world.job("shop", store=MortalStore(world.store, fate)).run(once=True)
    assert world.shop.rows() == {1: 7}
    assert world.statuses()["good"] == {"shop": "in progress", "crm": "failed"}
    assert log.ask("retry", "bad") == "refused"
    world.apply()
    assert world.statuses() == {
        "bad": {"shop": "discarded", "crm": "failed"}, "good": {"shop": "committed", "crm": "failed"},
    }  # fmt: skip
    assert log.ask("retry", "bad") == "ok"


def test_a_part_that_a_correction_replaced_stays_discarded_when_the_unit_is_judged_anew(world: SeveralWorld) -> None:
    """Shows it: else the unit would be applied over its correction in the target that has the correction."""
    log = world.log
    bad = (Delta("item", Operation.INSERT, {"id": 1}, {"id": 1, "v": 1, "w": 1}, {}), contact(1, 1))
    log.unit("bad", *bad)
    world.apply()
    assert world.statuses() == {"bad": {"shop": "failed", "crm": "failed"}}
    log.unit("good", item(1, 7), kind=UnitKind.CORRECTION)
    world.apply()
    assert world.statuses() == {"bad": {"shop": "discarded", "crm": "failed"}}
    world.shop.database.run("ALTER TABLE item ADD COLUMN w bigint")
    log.signatures = Signing(
        merged(only(reflect(one.database.url), TARGETS, one.name) for one in (world.shop, world.crm))
    )
    assert log.ask("retry", "bad") == "ok"
    assert world.statuses() == {"bad": {"shop": "discarded", "crm": "in progress"}}
    world.apply()
    assert (world.shop.rows(), world.crm.rows(), log.statuses()) == ({1: 7}, {1: 1}, {})


def test_a_unit_without_a_row_is_committed_by_the_first_target(world: SeveralWorld) -> None:
    world.log.unit("empty")
    assert world.statuses() == {"empty": {"shop": "in progress"}}
    world.apply()
    assert world.log.statuses() == {}


def test_a_malformed_unit_holds_back_units_in_each_of_its_targets(world: SeveralWorld) -> None:
    log = world.log
    log.malformed("bad", item(1), contact(1))
    log.unit("behind", *noting("behind", changed("item", 1, 2)))
    log.unit("there too", *noting("there too", changed("contact", 1, 2)))
    world.apply()
    assert world.statuses() == {
        "bad": {"shop": "failed", "crm": "failed"},
        "behind": {"shop": "blocked"},
        "there too": {"crm": "blocked"},
    }


def test_parts_that_come_late_bring_a_failed_unit_to_another_target(world: SeveralWorld) -> None:
    """Shows: a job that follows the log already learns of the unit, which holds back what touches its rows there."""
    log = world.log
    log.append(log.fragment("late", item(1)))
    log.expire("late")
    assert world.statuses() == {"late": {"shop": "failed"}}
    job = world.job("crm")
    world.apply()
    log.append(log.fragment("late", contact(1)))
    assert world.statuses() == {"late": {"shop": "failed", "crm": "failed"}}
    log.unit("behind", *noting("behind", changed("contact", 1, 2)))
    job.run(once=True)
    log.take_outcomes()
    assert world.statuses()["behind"] == {"crm": "blocked"}


def test_with_onUowFailure_stop_a_failure_ends_the_job_of_its_target_alone(world: SeveralWorld) -> None:  # noqa: N802
    world.log.unit("bad", *noting("bad", item(1, -1), contact(1)))
    world.log.unit("next", *noting("next", item(2), contact(2)))
    with pytest.raises(Exception, match="onUowFailure is stop"):
        world.apply("shop", on_failure=OnFailure.STOP)
    world.apply("crm", on_failure=OnFailure.STOP)
    assert (world.shop.noted(), world.crm.noted()) == ([], ["bad", "next"])


def test_a_job_for_the_only_target_refuses_a_log_of_several(world: SeveralWorld) -> None:
    """Shows: it would apply the parts of all targets to one, and nobody would apply them where they belong."""
    world.log.unit("both", *noting("both", item(1), contact(1)))
    environment = ApplyEnvironment(
        ApplySettings(lease=60.0, idle=0.01), world.store, "0", "a job", world.shop.target,
        InlineRunner(world.store, "0", world.shop.target), "log/0",
    )  # fmt: skip
    with pytest.raises(SettingsError, match="several targets \\(shop, crm\\)"):
        ApplyJob(environment, world.stop).run(once=True)
    assert world.shop.noted() == []


def test_a_job_says_that_the_log_has_not_its_target(world: SeveralWorld, caplog: pytest.LogCaptureFixture) -> None:
    """Shows: else it would stand there without a word, and apply nothing, where the daemons have another file."""
    world.log.unit("both", *noting("both", item(1), contact(1)))
    for name in ("shop", "other"):
        runner = InlineRunner(world.store, "0", world.shop.target)
        environment = ApplyEnvironment(
            ApplySettings(lease=60.0, idle=0.01),
            world.store,
            "0",
            "a job",
            world.shop.target,
            runner,
            f"log/0/{name}",
            name=name,
        )
        ApplyJob(environment, world.stop).run(once=True)
        assert ("log has no such target" in caplog.text) == (name == "other")


def test_a_snapshot_has_the_parts_of_units(world: SeveralWorld) -> None:
    world.log.unit("both", *noting("both", item(1), contact(1)))
    world.apply("shop")
    read = snapshot.load(snapshot.dump(world.log.state))
    assert read.targets.units == world.log.state.targets.units
    assert read.targets.assignment == world.log.state.targets.assignment
    assert read.targets.through == world.log.state.targets.through
    assert b"targets" not in snapshot.dump(FoldedLog())


def history(world: SeveralWorld, fates: Sequence[Fate], consistency: Consistency) -> Any:
    """Shows: units of both targets and of one, a failure in one of them, a retry, a discard; each job may die
    anywhere."""
    log = world.log
    log.unit("T-1", *noting("T-1", item(1, 1), contact(1, 1)))
    log.unit("T-2", *noting("T-2", changed("item", 1, 2)))
    log.unit("bad", *noting("bad", item(2, -1), contact(2, 2)))
    log.unit("T-3", *noting("T-3", changed("contact", 1, 3), changed("item", 1, 3)))
    applied(world, fates, consistency)
    world.shop.database.run("DROP TABLE item; CREATE TABLE item (id bigint PRIMARY KEY, v bigint);")
    world.shop.database.run("INSERT INTO item VALUES (1, 3)")
    log.ask("retry", "bad")
    log.unit("unwanted", *noting("unwanted", item(9), contact(9)))
    log.ask("discard", "unwanted")
    log.unit("T-4", *noting("T-4", changed("contact", 1, 4)))
    applied(world, fates, consistency)
    log.snapshot()
    applied(world, [Fate(), Fate()], consistency)
    state = load_state(world.store, "0")
    return (
        world.shop.rows(), world.crm.rows(), world.shop.noted(), world.crm.noted(), dict(state.units),
        state.targets.units,
    )  # fmt: skip


def applied(world: SeveralWorld, fates: Sequence[Fate], consistency: Consistency) -> None:
    for name, fate in zip(("shop", "crm"), fates, strict=True):
        for mortal in (fate, Fate()):
            store = MortalStore(world.store, mortal)
            target = MortalTarget(world.targets[name].target, mortal)
            job = world.job(name, store=store, target=target, consistency=consistency, max_units=3, group_units=2)
            with contextlib.suppress(KilledError):
                job.run(once=True)
                break
    world.log.take_outcomes()


@pytest.mark.parametrize(
    ("which", "every"), [(0, 5), (1, 5), *(pytest.param(n, 1, marks=pytest.mark.long) for n in (0, 1))]
)
def test_wherever_a_job_dies_each_target_gets_each_unit_once(tmp_path: Path, which: int, every: int) -> None:
    """Kills one target's job before and after its effects, some of them or all; the other job goes on."""
    whole = [Fate(), Fate()]
    expected = history(fresh(tmp_path / "whole"), whole, Consistency.PREFIX)
    assert expected == (
        {1: 3, 2: -1}, {1: 4, 2: 2}, ["T-1", "T-2", "T-3", "bad"], ["T-1", "T-3", "T-4", "bad"], {}, {},
    )  # fmt: skip
    for at, name in enumerate(whole[which].names):
        if at % every:
            continue
        fates = [Fate(), Fate()]
        fates[which] = Fate(at)
        found = history(fresh(tmp_path / str(at)), fates, Consistency.PREFIX)
        assert found == expected, f"died {name} (effect {at})"
