"""The check on whether all workers of an application collect units of work into one log. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kainite.leases.administration.report import ShardState
from kainite.observe.check import Check, Level
from kainite.verdict.facts import Facts

NAME: Final = "one log"

_REMEDY: Final = (
    "give all workers of the application one unitsOfWork, logTableName and logPartition, and start those with another"
    " one again; kainite run -p {file} --check shows what a file has"
)
_HELD: Final = (ShardState.READING, ShardState.HANDING_OVER, ShardState.WAITING)


def differing_log(worker: str, log: str, own: str, file: str = "FILE") -> Check:
    """Returns the check that fails.

    Args:
        worker: who collects into another log.
        log: the name of its log.
        own: the name of the log in the settings file; empty where the file has no units of work.
        file: the settings file, for the remedy; ``FILE`` in ``/health``, which does not tell paths.
    """
    here = f"this settings file has log {own}" if own else "this settings file has no units of work"
    cause = (
        f"worker {worker} collects this application's shards into log {log}, and {here}: no log gets all parts of a"
        " unit, so a daemon of this file takes no shard"
    )
    return Check(NAME, Level.BROKEN, cause, _REMEDY.format(file=file))


def one_log_check(facts: Facts) -> Iterator[Check]:
    """Yields the check if the leases show a worker with another log than the file's, or if a daemon tells of one."""
    rows = facts.leases.rows if facts.leases is not None else ()
    for row in rows:
        if row.state in _HELD and row.log not in (None, facts.collects_into):
            yield differing_log(str(row.owner), str(row.log), facts.collects_into, facts.file)
            return
    for daemon in facts.daemons:
        for answer in (daemon.answer or {}).get("checks", ()):
            if (check := Check.told(answer)).name == NAME:
                yield Check(NAME, check.level, f"daemon {daemon.address}: {check.cause}", check.remedy)
                return
