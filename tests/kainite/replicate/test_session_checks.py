"""A load's two databases, straight and through a pooler."""

from __future__ import annotations

from dataclasses import replace

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.findings import CheckVerdict
from kainite.replicate.session_checks import look_at_sessions
from support.pgbouncer import pgbouncer


def test_two_servers_straight(source: SourceSlot, postgres: str) -> None:
    assert list(look_at_sessions(ReplicaEnds(source, postgres, "log/0"))) == []


def test_a_pooler_before_the_target(source: SourceSlot, postgres: str) -> None:
    with pgbouncer(postgres) as pooled:
        [finding] = look_at_sessions(ReplicaEnds(source, pooled, "log/0"))
    assert (finding.verdict, finding.found.split()[1]) == (CheckVerdict.WRONG, "target's")
    assert "own port" in finding.mend


def test_a_pooler_before_the_source(source: SourceSlot, postgres: str) -> None:
    with pgbouncer(source.url) as pooled:
        [finding] = look_at_sessions(ReplicaEnds(replace(source, url=pooled), postgres, "log/0"))
    assert (finding.verdict, finding.found.split()[1]) == (CheckVerdict.WRONG, "source's")
