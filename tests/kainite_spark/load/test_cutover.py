"""Cut-overs of a real replica: what is checked, what is set, and what a kill at each step leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psycopg
import pytest

from kainite.base.errors import CatalogueError, SourceError, TargetError, TargetFencedError, TargetUnavailableError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.applied_point import LogStanding, read_standing
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.foreign_keys import take_off
from kainite.replicate.ledger import LoadState
from kainite.replicate.load_ledger import LoadLedger
from kainite.settings import ApplySettings, TargetTriggers
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.load import cutover, cutover_sequences
from kainite_spark.load.cutover import CutOver, CutOverDone
from kainite_spark.load.cutover_sequences import PostgresSequences
from kainite_spark.load.cutover_source import PostgresCutOverSource
from kainite_spark.targets.opening import open_target
from support.replica import Replica, replica
from support.replicas import LOG, Loading
from support.stores import Database, Stores
from support.waiting import eventually

TABLES = """
    CREATE TABLE item (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text);
    CREATE TABLE line (id bigserial PRIMARY KEY, item_id int NOT NULL REFERENCES item);
    CREATE SEQUENCE ticket INCREMENT BY -5;
    CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.name := upper(NEW.name); RETURN NEW; END';
    CREATE TRIGGER loud BEFORE INSERT ON item FOR EACH ROW EXECUTE FUNCTION shout();
"""
WRITES = (
    "INSERT INTO item (name) VALUES ('one'), ('two')",
    "INSERT INTO line (item_id) SELECT id FROM item",
    "SELECT nextval('ticket'), nextval('ticket')",
)
OF_ANOTHER_LOG = """
    CREATE TABLE parcel (id int PRIMARY KEY, name text);
    CREATE TRIGGER twice BEFORE INSERT ON parcel FOR EACH ROW EXECUTE FUNCTION shout();
"""
OFF = ApplySettings(triggers=TargetTriggers.OFF)


class KilledError(Exception):
    """The cut-over was killed."""


@dataclass
class Followed:
    """A live replica.

    Attributes:
        made: what carries the source's transactions to the target.
        world: both databases.
        told: how far the log was, at each look.
    """

    made: Replica
    world: Loading
    told: list[LogStanding] = field(default_factory=list)

    def cut_over(self, meanwhile: Callable[[], object] | None = None, wait: float = 60.0) -> CutOverDone | None:
        """Cuts over; the extractor, the log and the apply job get on whenever it waits."""

        def tell(_: str, found: LogStanding) -> None:
            self.told.append(found)
            (meanwhile or self.catch_up)()

        log = partial(read_standing, self.made.store, "0")
        return CutOver(self.source, log, threading.Event(), tell, wait).run()

    @property
    def source(self) -> PostgresCutOverSource:
        return PostgresCutOverSource(self.world.ends, PostgresSequences(self.world.ends), lock_wait=0.5)

    def catch_up(self) -> None:
        self.made.catch_up(1)

    def state(self) -> LoadState:
        return self.world.found().state


@contextmanager
def followed(source: SourceSlot, target: str) -> Iterator[Followed]:
    with replica(source, target, TABLES, apply=OFF) as made:
        world = Loading(ReplicaEnds(source, target, LOG), 0)
        world.load()
        catalogue = reflect(target)
        opened = open_target(target, catalogue, apply=OFF)
        opened.prepare(LOG, catalogue)
        opened.close()
        world.in_source(*WRITES)
        made.catch_up(2)
        assert world.differences() == {}
        yield Followed(made, world)


def test_what_the_source_has_is_in_the_target_which_may_then_be_written(source: SourceSlot, postgres: str) -> None:
    with followed(source, postgres) as replica:
        replica.world.in_source("INSERT INTO item (name) VALUES ('last')")
        done = replica.cut_over(lambda: replica.made.catch_up(2))
        assert done is not None
        assert [found.collected for found in replica.told] == [False]
        assert replica.world.differences() == {}
        assert set(done.sequences) == {"public.item_id_seq", "public.line_id_seq", "public.ticket"}
        assert ["loud" in trigger for trigger in done.triggers] == [True]
        assert replica.state() is LoadState.CUT_OVER
        written = "INSERT INTO item (name) VALUES ('mine') RETURNING id, name"
        assert replica.world.in_target(written) == [(4, "MINE")]
        assert replica.world.in_target("SELECT nextval('ticket')") == replica.world.in_source(
            "SELECT nextval('ticket')"
        )


def test_nobody_applies_and_no_load_empties_a_target_that_was_cut_over(source: SourceSlot, postgres: str) -> None:
    with followed(source, postgres) as replica:
        replica.cut_over()
        target = open_target(postgres, reflect(postgres))
        with pytest.raises(TargetUnavailableError, match="was cut over"):
            target.raise_generation(LOG, 99)
        off = open_target(postgres, reflect(postgres), apply=OFF)
        off.prepare(LOG, reflect(postgres))  # as an apply job does that a service manager starts again
        off.close()
        assert replica.world.in_target("SELECT tgenabled FROM pg_trigger WHERE tgname = 'loud'") == [("O",)]
        with pytest.raises(CatalogueError, match="others may have written in it"):
            replica.world.load(anew=True)
        with pytest.raises(TargetError, match="not live, so it cannot be cut over"):
            replica.cut_over()
        assert replica.world.in_target("SELECT count(*) FROM item") == [(2,)]
        with psycopg.connect(postgres, autocommit=True) as connection:
            undone = LoadLedger(connection, LOG).make_live_again()
            assert undone is not None
            assert (undone.since or 0) > 0, "the apply job has tried to begin"
        target.raise_generation(LOG, 99)
        target.close()
        assert replica.state() is LoadState.LIVE


def test_foreign_keys_that_a_killed_load_of_a_table_has_left_off_are_made_first(
    source: SourceSlot, postgres: str
) -> None:
    there = "SELECT conname::text, convalidated FROM pg_constraint WHERE contype = 'f'"
    with followed(source, postgres) as replica:
        with psycopg.connect(postgres) as connection:
            assert take_off(connection, LOG, ("public", "item")) == ["public.line line_item_id_fkey"]
        assert replica.world.in_target(there) == []
        with psycopg.connect(postgres, autocommit=True) as connection, pytest.raises(TargetFencedError):
            LoadLedger(connection, LOG).cut_over(lambda _: None)
        done = replica.cut_over()
        assert done is not None
        assert done.foreign_keys == ()
        assert replica.world.in_target(there) == [("line_item_id_fkey", True)]
        assert replica.state() is LoadState.CUT_OVER


def test_foreign_keys_that_the_target_refuses_are_told_when_it_is_cut_over(source: SourceSlot, postgres: str) -> None:
    with followed(source, postgres) as replica:
        with psycopg.connect(postgres) as connection:
            take_off(connection, LOG, ("public", "item"))
        replica.world.in_target("INSERT INTO line VALUES (99, 77)")
        done = replica.cut_over()
        assert done is not None
        assert ["line_item_id_fkey" in told and "(77)" in told for told in done.foreign_keys] == [True]


def test_a_cut_over_leaves_the_apply_job_of_another_log_in_the_same_database_at_work(
    source: SourceSlot, postgres: str
) -> None:
    enabled = "SELECT tgname::text, tgenabled::text FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1"
    with followed(source, postgres) as replica, closing(Stores(Database(postgres))) as stores:
        other = stores.open(OF_ANOTHER_LOG, apply=OFF)
        assert replica.world.in_target(enabled) == [("loud", "D"), ("twice", "D")]
        assert other.statuses(other.unit(1, other.insert("parcel", id=1, name="a"))) == ["committed"]

        done = replica.cut_over()
        assert done is not None
        assert (["loud" in each for each in done.triggers], ["twice" in each for each in done.still_off]) == (
            [True],
            [True],
        )
        assert replica.world.in_target(enabled) == [("loud", "O"), ("twice", "D")]
        assert other.statuses(other.unit(2, other.insert("parcel", id=2, name="b"))) == ["committed"]

        for tid, policy in enumerate(TargetTriggers, 3):  # the other log's apply job is started again
            again = stores.open("", apply=ApplySettings(triggers=policy))
            assert again.statuses(again.unit(tid, again.insert("parcel", id=tid, name="c"))) == ["committed"]
            of_others = again.unit(100 + tid, again.update("item", {"id": 1}, name="x"))
            if policy is TargetTriggers.FIRE:
                assert again.statuses(of_others) == ["committed"]
            else:
                with pytest.raises(TargetError, match=r"a unit changes item, and triggers or rules fire .* loud"):
                    again.session.apply(again.fence, [of_others])
        assert replica.world.in_target(enabled) == [("loud", "O"), ("twice", "D")]
        assert replica.world.in_target("SELECT DISTINCT name FROM parcel ORDER BY 1") == [("a",), ("b",), ("c",)]

        with psycopg.connect(postgres, autocommit=True) as connection:
            LoadLedger(connection, LOG).make_live_again()
        with pytest.raises(CatalogueError, match="loud"):  # it is a replica again, whose triggers have fired already
            stores.open("")


def test_a_cut_over_that_is_taken_back_tells_whether_anybody_can_have_written(
    source: SourceSlot, postgres: str
) -> None:
    with followed(source, postgres) as replica, psycopg.connect(postgres, autocommit=True) as connection:
        ledger = LoadLedger(connection, LOG)
        assert ledger.make_live_again() is None

        def since(*statements: str) -> int | None:
            ledger.cut_over(lambda _: None)
            replica.world.in_target(*statements)
            undone = ledger.make_live_again()
            return None if undone is None else undone.since

        writes = "INSERT INTO line VALUES (77, 1)"
        assert since("SELECT count(*) FROM item") == 0
        assert since(writes) == 1
        assert since("DELETE FROM line", writes, "SELECT 1") == 2


def test_who_still_writes_is_named_and_the_target_stays_a_replica(source: SourceSlot, postgres: str) -> None:
    with followed(source, postgres) as replica:
        writes = "INSERT INTO item (name) VALUES ('late')"
        with pytest.raises(SourceError, match=r"transaction \d+ has changed public\.item and committed at"):
            replica.cut_over(lambda: replica.world.in_source(writes))
        assert replica.state() is LoadState.LIVE
        replica.made.catch_up(2)
        assert replica.cut_over() is not None
        assert replica.world.differences() == {}


def test_a_write_behind_the_wait_is_seen_in_the_last_transaction(
    source: SourceSlot, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with followed(source, postgres) as replica:
        paired: Any = getattr(cutover_sequences, "paired")  # noqa: B009

        def write_first(*ends: psycopg.Connection) -> object:
            replica.world.in_source("DELETE FROM line")
            return paired(*ends)

        monkeypatch.setattr(cutover_sequences, "paired", write_first)
        with pytest.raises(SourceError, match=r"public\.line"):
            replica.cut_over()
        assert replica.state() is LoadState.LIVE
        assert replica.world.in_target("SELECT tgenabled FROM pg_trigger WHERE tgname = 'loud'") == [("D",)]


@pytest.mark.parametrize("step", ["paired", "set_forward", "switch_on"])
def test_a_cut_over_that_was_killed_is_started_again(
    source: SourceSlot, postgres: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with followed(source, postgres) as replica:
        module = cutover if step == "switch_on" else cutover_sequences
        real = getattr(module, step)

        def killed(*arguments: object) -> None:
            real(*arguments)
            raise KilledError

        with monkeypatch.context() as patched:
            patched.setattr(module, step, killed)
            with pytest.raises(KilledError):
                replica.cut_over()
        assert replica.state() is LoadState.LIVE
        assert replica.world.in_target("SELECT tgenabled FROM pg_trigger WHERE tgname = 'loud'") == [("D",)]
        replica.made.catch_up(0)
        assert replica.cut_over() is not None
        left = "SELECT FROM pg_replication_slots WHERE temporary AND database = current_database()"
        eventually(lambda: replica.world.in_source(left) == [])


def test_an_open_transaction_is_named_before_anything_begins(source: SourceSlot, postgres: str) -> None:
    with followed(source, postgres) as replica, psycopg.connect(source.url) as writer:
        writer.execute("DELETE FROM line")
        with pytest.raises(SourceError, match=f"pid {writer.info.backend_pid} "):
            replica.cut_over()
        assert replica.told == []


def test_what_is_not_applied_in_time_or_failed_is_told(source: SourceSlot, postgres: str) -> None:
    with followed(source, postgres) as replica:
        with pytest.raises(TargetError, match=r"not everything up to .* is applied: the log does not have it yet"):
            replica.cut_over(lambda: None, wait=0.01)
        replica.world.in_target("ALTER TABLE item ADD CHECK (name <> 'BAD')")
        replica.world.in_source("ALTER TABLE item DISABLE TRIGGER loud", "INSERT INTO item (name) VALUES ('BAD')")
        with pytest.raises(TargetError, match=r"1 unit is not applied before a person decides: pg-.*item_name_check"):
            replica.cut_over(lambda: replica.made.catch_up(3))
        assert replica.state() is LoadState.LIVE


def test_a_stop_leaves_the_replica_as_it_was(source: SourceSlot, postgres: str) -> None:
    with followed(source, postgres) as replica:
        stop = threading.Event()
        stop.set()
        waits = LogStanding(collected=False, applied=False, left=0, stuck=())
        assert CutOver(replica.source, lambda _: waits, stop, lambda *_: None, 60.0).run() is None
        assert replica.state() is LoadState.LIVE
