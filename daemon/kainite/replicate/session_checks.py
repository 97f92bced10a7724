"""Looks whether source and target give a load sessions of its own.

The snapshot of a consistent point lives as long as its session, one driver at a time holds a lock of its session in the
target, and a step ends the sessions that an earlier try has left, by their names. Behind a pooler in transaction mode
the lock would be another client's, and so would the session that is ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from kainite.replicate.ends import ReplicaEnds, both_sessions, is_mariadb, source_session
from kainite.replicate.findings import CheckFinding, wrong
from kainite.targets.postgresql.pooling import OWN_PORT, is_own, share_sessions


def look_at_sessions(ends: ReplicaEnds) -> Iterator[CheckFinding]:
    """Yields which address leads through a pooler in transaction mode; raises SourceError where one does not answer."""
    with _sessions(ends) as ones:
        if all(map(is_own, ones)):
            return
    with _sessions(ends) as ones, _sessions(ends) as others:
        for name, one, other in zip(("source", "target"), ones, others, strict=False):
            if share_sessions(one, other):
                yield wrong("sessions", f"the {name}'s address leads through a pooler in transaction mode, where no"
                            " session is Kainite's own", OWN_PORT)  # fmt: skip


@contextmanager
def _sessions(ends: ReplicaEnds) -> Iterator[Sequence[psycopg.Connection]]:
    """Connects to source and target, to the source alone where the target is MariaDB's."""
    if is_mariadb(ends.target):
        with source_session(ends.source.url) as source:
            yield (source,)
    else:
        with both_sessions(ends) as both:
            yield both
