"""The process that keeps a snapshot: as long as the ledger needs it, and no longer."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.consistent_snapshot import lives
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate import ledger
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.keeper import LEFT_ALONE_S, kept_snapshot
from kainite.replicate.ledger import CopyStep, LoadStep
from kainite.replicate.load_ledger import LoadLedger
from support.waiting import eventually

STEP = LoadStep(1, 1, "public", "item", CopyStep((), ""))


@pytest.fixture
def load(postgres: str) -> Iterator[LoadLedger]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE kainite_fence (log_partition text PRIMARY KEY, generation bigint, micro_batch bigint)"
        )
        made = LoadLedger(connection, "log/0")
        made.create()
        made.begin()
        yield made


def test_a_snapshot_outlives_what_is_not_noted_and_ends_when_rows_are_copied(
    source: SourceSlot, postgres: str, load: LoadLedger
) -> None:
    point = kept_snapshot(ReplicaEnds(source, postgres, "log/0"), load.generation, ())
    load.plan(point, (), [STEP])
    assert lives(source.url, point.snapshot)
    load.rows("UPDATE kainite_load_step SET done_at = CURRENT_TIMESTAMP RETURNING step")
    eventually(lambda: not lives(source.url, point.snapshot))


def test_a_snapshot_that_no_driver_wants_any_more_is_let_go(
    source: SourceSlot, postgres: str, load: LoadLedger
) -> None:
    point = kept_snapshot(ReplicaEnds(source, postgres, "log/0"), load.generation, ())
    load.plan(point, (), [STEP])
    load.rows(f"UPDATE kainite_load SET seen_at = seen_at - {LEFT_ALONE_S + 1} * interval '1 s' RETURNING generation")
    eventually(lambda: not lives(source.url, point.snapshot))


def test_a_new_generation_with_a_point_of_its_own_ends_the_former_snapshot(
    source: SourceSlot, postgres: str, load: LoadLedger
) -> None:
    ends = ReplicaEnds(source, postgres, "log/0")
    former = kept_snapshot(ends, load.generation, ())
    load.begin()
    latter = kept_snapshot(ends, load.generation, ())
    load.plan(latter, (), [STEP])
    eventually(lambda: not lives(source.url, former.snapshot))
    assert lives(source.url, latter.snapshot)


def test_what_the_source_refuses_is_the_answer(source: SourceSlot, postgres: str, load: LoadLedger) -> None:
    with pytest.raises(SourceError, match="nonexistent"):
        kept_snapshot(ReplicaEnds(SourceSlot("host=/nonexistent", "s", "p"), postgres, "log/0"), 1, ())
    with psycopg.connect(source.url) as writer:
        writer.execute("INSERT INTO item VALUES (1)")
        with pytest.raises(SourceError, match=f"pid {writer.info.backend_pid} "):
            kept_snapshot(ReplicaEnds(source, postgres, "log/0"), load.generation, (), lock_wait=0.2)
    assert STEP.stage < ledger.STATEMENT_STAGE
