"""Asks the target of a replica for what ``kainite status``, ``/health`` and the metrics tell of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from typing import Final

import psycopg

from kainite.base.redaction import redacted
from kainite.replicate.ledger import LoadState
from kainite.replicate.status import ReplicaStatus, TableState, TableStatus, status_of
from kainite.replicate.verify_report import summary_of
from kainite.targets.postgresql.connection import connect
from kainite.verdict.facts import ReplicaFacts, ReplicaTableFacts

ANSWER_S: Final = 2
"""Seconds for which the target may take: a person waits for the verdict."""

_NEEDS_A_PERSON: Final = (TableState.GIVEN_UP, TableState.FAILED)


def read_replica(url: str, log_partition: str) -> ReplicaFacts:
    """Returns what a target tells of its load and of its latest comparison.

    Args:
        url: the target, as libpq takes it.
        log_partition: the log's name there.
    """
    try:
        with closing(connect(url, "kainite status", ANSWER_S)) as connection:
            connection.execute("SELECT set_config('statement_timeout', %s, false)", (f"{ANSWER_S}s",))
            return facts_of(status_of(connection, log_partition), time.time())
    except psycopg.Error as error:
        return ReplicaFacts(error=redacted(" ".join(str(error).split())))


def facts_of(status: ReplicaStatus, now: float) -> ReplicaFacts:
    """Returns what a target's status means; ``now`` is in seconds since the epoch."""
    verified = status.verified
    not_live = [table for table in status.tables if table.state is not TableState.LIVE]
    by_state = {
        state: tuple((one.table, one.cause or "") for one in not_live if one.state is state)
        for state in (TableState.FAILED, TableState.GIVEN_UP)
    }
    loaded = ReplicaFacts(
        load=status.state.value if status.state else "",
        ranges_left=sum(table.ranges - table.ranges_done for table in not_live),
        loading=tuple(table.table for table in not_live if table.state not in by_state),
        failed=by_state[TableState.FAILED],
        given_up=by_state[TableState.GIVEN_UP],
        tables=_tables(status.tables),
        marks={one.table: _mark(one) for one in not_live if status.state is LoadState.LIVE},
    )
    if verified is None:
        return loaded
    loaded = replace(loaded, good_age=_age(verified.good_at, now), every=verified.every, trouble=verified.trouble or "")
    if not verified.ended_at:
        return loaded
    return replace(
        loaded,
        verdict=verified.verdict,
        passed=verified.passed,
        summary=summary_of(verified),
        different=verified.different,
        age=_age(verified.ended_at, now),
    )


def _tables(tables: Sequence[TableStatus]) -> tuple[ReplicaTableFacts, ...]:
    """Returns all tables: those that need a person first, then the others that are not live."""
    ordered = sorted(tables, key=lambda one: (one.state not in _NEEDS_A_PERSON, one.state is TableState.LIVE))
    return tuple(
        ReplicaTableFacts(one.table, one.state.value, one.state is TableState.LIVE, one.cause or "", one.ranges,
                          one.ranges_done, one.rows, one.held)
        for one in ordered
    )  # fmt: skip


def _mark(table: TableStatus) -> str:
    """Returns what a unit that touches a table tells of it."""
    point = "" if table.position is None else f", point {table.position}"
    return f"{table.table} is not live: {table.state}{point}"


def _age(at: str | None, now: float) -> float | None:
    return None if not at else max(0.0, now - datetime.fromisoformat(at).timestamp())
