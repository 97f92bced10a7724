"""The check on each of several streams: whether it has leases, and what daemons say of it. Pure.

Kinesis is not asked. A stream that exists has leases from the moment on when it is read first, so one without any lease
was never opened: it is misspelled, or refused, or no daemon has read the file that names it. A stream that is refused
now and was read before has leases; the daemons that fail to open it say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kainite.observe.check import STREAM, Check, Level
from kainite.settings.several import is_shard_of
from kainite.verdict.facts import Facts

_REMEDY: Final = (
    "is its name right, and has each daemon read the file (SIGHUP)? kainite doctor -p {file} asks Kinesis for it;"
    " kainite run -p {file} starts a daemon"
)


def stream_checks(facts: Facts) -> Iterator[Check]:
    """Yields the check on each stream that the settings name among several, or that a daemon tells of."""
    told = _told(facts)
    for stream in facts.streams:
        name = f"{STREAM}{stream}"
        yield told.pop(name) if name in told else _of_leases(stream, facts)
    yield from told.values()


def _told(facts: Facts) -> dict[str, Check]:
    """Returns the worst check on each stream that daemons tell."""
    found: dict[str, Check] = {}
    for daemon in facts.daemons:
        for answer in (daemon.answer or {}).get("checks", ()):
            check = Check.told(answer)
            if check.name.startswith(STREAM) and (check.name not in found or check.level > found[check.name].level):
                found[check.name] = Check(check.name, check.level, check.cause, _of_file(check.remedy, facts.file))
    return found


def _of_file(remedy: str, file: str) -> str:
    return remedy.replace("-p FILE", f"-p {file}")  # /health does not tell paths


def _of_leases(stream: str, facts: Facts) -> Check:
    name = f"{STREAM}{stream}"
    if facts.leases is None or facts.leases.error:
        return Check(name, Level.UNKNOWN, "the lease table was not read")
    if not any(is_shard_of(row.shard, stream) for row in facts.leases.rows):
        return Check(name, Level.BROKEN, "it has no lease: nobody reads it", _REMEDY.format(file=facts.file))
    return Check(name, Level.OK, "its shards have leases")
