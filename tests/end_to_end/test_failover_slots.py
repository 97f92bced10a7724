"""A standby of the source is promoted: the extractor goes on there without a loss, or refuses it with the reason."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.capture.postgresql.replication_connection import connect, execute
from kainite.capture.postgresql.source_reach import is_away
from kainite.replicate.ends import source_session
from kainite.replicate.failover_checks import look_at_failover
from kainite.replicate.slot import found_slot
from kainite.replicate.standby_checks import look_at_standbys, standbys_of
from support.replica import Replica, replica
from support.replicas import run
from support.standby import STANDBY_SLOT, Pair, primary_with_standby
from support.waiting import eventually

pytestmark = pytest.mark.timeout(300)

TABLES = """
    CREATE TABLE account (id int PRIMARY KEY, n int);
    CREATE TABLE beat (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int);
"""


@pytest.fixture
def pair() -> Iterator[Pair]:
    folder = Path(tempfile.mkdtemp(prefix="kainite-ha-"))
    folder.chmod(0o755)
    try:
        with primary_with_standby(folder) as made:
            run(made.primary, "CREATE PUBLICATION changes FOR ALL TABLES")
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def slot_of(pair: Pair) -> SourceSlot:
    return SourceSlot(pair.either, "shop", "changes")


def told(pair: Pair) -> list[tuple[str, str, str]]:
    with psycopg.connect(pair.primary, autocommit=True) as connection:
        found = look_at_failover(connection, found_slot(connection, "shop"), "shop")
        return [(one.verdict.value, one.found, one.mend) for one in found]


def write(url: str, first: int, count: int) -> None:
    run(url, *(f"INSERT INTO account VALUES ({n}, 0)" for n in range(first, first + count)))


def copy_the_slot(pair: Pair, made: Replica) -> None:
    """Waits until the standby has a copy of the slot: it makes one as soon as the slot has moved on."""

    def moved() -> bool:
        run(pair.primary, "SELECT pg_log_standby_snapshot()", "INSERT INTO beat (n) VALUES (1)")
        made.catch_up(1)
        return pair.has_copied("shop")

    eventually(moved, limit=120.0)


def copies_no_slots(pair: Pair) -> None:
    """Has the standby copy no slots, as one that was set up without a thought of them."""
    run(pair.standby, "ALTER SYSTEM SET sync_replication_slots = off", "SELECT pg_reload_conf()")
    eventually(lambda: run(pair.standby, "SHOW sync_replication_slots") == [("off",)])


def same(made: Replica, target: str, url: str) -> None:
    query = "SELECT * FROM account ORDER BY 1"
    assert made.failed() == {}
    assert run(target, query) == run(url, query)


def test_the_extractor_goes_on_at_the_promoted_standby(pair: Pair, postgres: str) -> None:
    with replica(slot_of(pair), postgres, TABLES) as made:
        assert [verdict for verdict, *_ in told(pair)] == ["warning"]
        run(pair.primary, f"ALTER SYSTEM SET synchronized_standby_slots = '{STANDBY_SLOT}'", "SELECT pg_reload_conf()")
        write(pair.primary, 0, 20)
        made.catch_up(20)
        copy_the_slot(pair, made)
        assert told(pair) == [("ok", f"nothing is extracted before {STANDBY_SLOT} has it", "")]
        write(pair.primary, 20, 10)
        made.catch_up(10)
        number = made.number
        write(pair.primary, 30, 5)  # on the standby, and not extracted
        pair.has_all()
        pair.kill_primary()
        assert is_away(slot_of(pair).url)  # the standby answers, and takes no writes yet: nobody has to mend Kainite
        pair.promote()
        assert not is_away(slot_of(pair).url)
        made.go_on()
        write(pair.standby, 35, 5)
        made.catch_up(10)
        assert made.number == number + 10
        same(made, postgres, pair.standby)


def test_a_standby_says_before_a_switch_whether_it_has_the_slot(pair: Pair, postgres: str) -> None:
    def said() -> str:
        with source_session(pair.primary) as connection:
            [found] = look_at_standbys(connection, pair.either, found_slot(connection, "shop"), "shop")
        return found.found

    copies_no_slots(pair)
    with replica(slot_of(pair), postgres, TABLES) as made:
        write(pair.primary, 0, 5)
        made.catch_up(5)
        assert "has no copy of slot shop" in said()
        assert said() in [one.found for one in standbys_of(slot_of(pair))]
        run(pair.standby, "ALTER SYSTEM SET sync_replication_slots = on", "SELECT pg_reload_conf()")
        copy_the_slot(pair, made)
        pair.has_all()
        eventually(lambda: "and all WAL of the primary" in said())
        pair.stop_standby()
        assert "does not answer" in said()


def test_the_extractor_refuses_a_promoted_standby_that_never_had_the_slot(pair: Pair, postgres: str) -> None:
    copies_no_slots(pair)
    with replica(slot_of(pair), postgres, TABLES) as made:
        write(pair.primary, 0, 5)
        made.catch_up(5)
        pair.has_all()
        pair.kill_primary()
        pair.promote()
        made.go_on()
        with pytest.raises(SourceError, match=r"shop.* does not exist"):
            made.catch_up(1)
        assert len(run(postgres, "SELECT id FROM account")) == 5


def test_what_the_promoted_standby_lacks_is_not_passed_over(pair: Pair, postgres: str) -> None:
    """Shows a primary that does not wait for its standby: more may be extracted than the standby has."""
    with replica(slot_of(pair), postgres, TABLES) as made:
        write(pair.primary, 0, 5)
        made.catch_up(5)
        copy_the_slot(pair, made)
        pair.stop_standby()
        write(pair.primary, 5, 5)
        made.catch_up(5)
        pair.kill_primary()
        pair.start_standby()
        pair.promote()
        made.go_on()
        write(pair.standby, 100, 5)
        with pytest.raises(SourceError, match="transactions that were extracted are not on this server"):
            made.catch_up(5)
        assert len(run(postgres, "SELECT id FROM account")) == 10


def test_a_primary_that_waits_for_its_standby_gives_nothing_that_the_standby_lacks(pair: Pair, postgres: str) -> None:
    with replica(slot_of(pair), postgres, TABLES) as made:
        write(pair.primary, 0, 5)
        made.catch_up(5)
        copy_the_slot(pair, made)
        run(pair.primary, f"ALTER SYSTEM SET synchronized_standby_slots = '{STANDBY_SLOT}'", "SELECT pg_reload_conf()")
        pair.stop_standby()
        write(pair.primary, 5, 5)
        number = made.number
        made.answer_once()
        assert made.number == number
        assert told(pair)[0][1] == f"the extraction waits for standbys that are away: {STANDBY_SLOT}"
        pair.start_standby()
        made.catch_up(5)
        same(made, postgres, pair.primary)


def test_a_slot_without_a_copy_is_told(pair: Pair) -> None:
    run(pair.primary, "SELECT pg_create_logical_replication_slot('shop', 'pgoutput')")
    [(verdict, found, mend)] = told(pair)
    assert (verdict, found.startswith("no standby has slot shop")) == ("warning", True)
    command = mend[mend.index("ALTER_REPLICATION_SLOT") :].rstrip("'")
    with psycopg.connect(pair.primary, autocommit=True) as plain:
        replication = connect(pair.primary)
        execute(replication, command)
        replication.finish()
        slot = found_slot(plain, "shop")
    assert slot is not None
    assert slot.failover
