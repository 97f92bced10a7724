"""Checks on the log's owner, on the fleet's workers and duties, on the source, and on what could not be read. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kainite.fleet.model.records import Duty, Picture
from kainite.fleet.model.states import DutyStatus, WorkerStatus
from kainite.observe.check import Check, Level, spoken
from kainite.verdict.facts import DaemonFacts, Facts, LogFacts, SourceFacts

EXTRACTORS_KEY: Final = "quiet_seconds"
"""Stands in the ``/health`` of an extraction, and in no other."""

SOURCE_LATE_S: Final = 60.0
"""Seconds by which an extractor may be behind its source before a person should look."""


def owner_check(log: LogFacts, now_ms: int, file: str) -> Check:
    """Returns the check on the log's owner."""
    start = f"start a daemon: kainite run -p {file}"
    if log.error:
        return Check("owner", Level.BROKEN, f"the log was not read: {log.error}", _table_remedy(log.error, file))
    if log.owner is None:
        return Check("owner", Level.BROKEN, f"log partition {log.partition} was never owned by anybody", start)
    who = f"{log.owner} ({log.process})" if log.process else log.owner
    if log.released:
        return Check("owner", Level.BROKEN, f"nobody owns the log; {who} has released it", start)
    if log.alive:
        return Check("owner", Level.OK, who)
    if log.alive is None:
        cause = f"{who}: no heartbeat came within {spoken(log.waited)}, too short a time to tell"
        return Check("owner", Level.UNKNOWN, cause, f"kainite status -p {file} waits until it can tell")
    since = f"; its last figures are {spoken((now_ms - log.summary.at_ms) / 1000)} old" if log.summary else ""
    return Check(
        "owner", Level.BROKEN, f"{who} sent no heartbeat within {spoken(log.waited)}{since}",
        f"{start}, on any host; units that are in the log are still applied",
    )  # fmt: skip


def figures_check(log: LogFacts, now_ms: int) -> Check | None:
    """Returns a check that says what the figures are worth, where they are not of now."""
    if log.error or log.owner is None or (log.summary is not None and log.alive):
        return None
    if log.summary is None:
        return Check("figures", Level.NOTE, "the log's owner has told no figures of units yet")
    age = spoken((now_ms - log.summary.at_ms) / 1000)
    return Check("figures", Level.NOTE, f"the figures of units are {age} old; units may have been applied since")


def table_checks(facts: Facts) -> Iterator[Check]:
    """Yields a check for each table that could not be read."""
    for name, part in (("lease table", facts.leases), ("fleet table", facts.fleet)):
        if part is not None and part.error:
            yield Check(name, Level.BROKEN, part.error, _table_remedy(part.error, facts.file))
    if facts.leases is not None and not facts.leases.error and not facts.leases.rows:
        yield Check("lease table", Level.BROKEN, "it has no lease", f"start a daemon: kainite run -p {facts.file}")


def daemon_checks(daemons: tuple[DaemonFacts, ...]) -> Iterator[Check]:
    """Yields a check for each daemon that was asked."""
    for daemon in daemons:
        name = f"daemon {daemon.address}"
        if daemon.answer is not None and EXTRACTORS_KEY in daemon.answer:
            continue  # the check on the source tells of it
        if daemon.answer is None:
            yield Check(name, Level.NOTE, f"it was not asked: {daemon.error}",
                        "if a daemon should run there, start it; --at HOST:PORT asks others")  # fmt: skip
            continue
        problems = (*daemon.answer.get("problems", ()), *daemon.answer.get("not_ready", ()))
        told = {str(check.get("cause", "")) for check in daemon.answer.get("checks", ())}
        shards = tuple(f"{shard.get('shard')}: " for shard in daemon.answer.get("shards", ()))
        own = [text for text in map(str, problems) if text not in told and not text.startswith(shards)]
        if own:
            yield Check(
                name,
                Level.DEGRADED,
                "; ".join(dict.fromkeys(own)),
                f"look at its log, and at http://{daemon.address}/health",
            )
        else:
            yield Check(name, Level.OK, "it is well")


def fleet_checks(picture: Picture, file: str) -> Iterator[Check]:
    """Yields the checks on workers and duties."""
    lost = [worker.name for worker in picture.workers.values() if worker.status is WorkerStatus.DEAD]
    if lost:
        yield Check("workers", Level.NOTE, f"gone: {' '.join(sorted(lost))}")
    for name, duty in sorted(picture.duties.items()):
        yield _duty(name, duty, file)


def _duty(name: str, duty: Duty, file: str) -> Check:
    shown = f"duty {name}"
    if not duty.wanted:
        return Check(shown, Level.NOTE, "an operator has stopped it", f"kainite fleet start -p {file} {name}")
    if duty.status is DutyStatus.ERROR:
        why = duty.error or "it failed too often"
        return Check(shown, Level.BROKEN, why, f"mend the cause, then kainite fleet start -p {file} {name}")
    if duty.status is DutyStatus.RUNNING:
        return Check(shown, Level.OK, f"it runs at {duty.worker}")
    at = f" at {duty.worker}" if duty.worker else ""
    error = f"; its last error: {duty.error}" if duty.error else ""
    return Check(
        shown, Level.DEGRADED, f"it does not run: {duty.status.value}{at}{error}",
        f"kainite fleet workers -p {file} tells who could run it",
    )  # fmt: skip


def source_of(daemons: tuple[DaemonFacts, ...], now_ms: int) -> SourceFacts:
    """Returns what the extraction among the processes that were asked tells of its source."""
    answers = (daemon.answer for daemon in daemons if daemon.answer is not None)
    told = next((answer for answer in answers if EXTRACTORS_KEY in answer), None)
    if told is None:
        return SourceFacts()
    committed = (told.get("source") or {}).get("time")
    newest = None if committed is None else max(0.0, now_ms / 1000 - committed / 1e9)
    return SourceFacts(newest=newest, heard=told[EXTRACTORS_KEY], problems=tuple(map(str, told.get("problems", ()))))


def source_check(source: SourceFacts) -> Check:
    """Returns the check on the source and its extractor."""
    remedy = "look at the extractor: does it run, and does it reach the source and the stream?"
    if source.problems:
        return Check("source", Level.BROKEN, "; ".join(source.problems), remedy)
    if source.seconds is not None and source.seconds >= SOURCE_LATE_S:
        return Check("source", Level.DEGRADED, f"the stream is {spoken(source.seconds)} behind the source", remedy)
    if source.seconds is None and source.heard is None:
        return Check(
            "source", Level.NOTE, "no extractor tells how far it is: what is not on the stream is not seen here"
        )
    newest = "" if source.newest is None else f"; the newest commit that it gave is {spoken(source.newest)} old"
    return Check("source", Level.OK, f"the extractor answers{newest}")


def _table_remedy(error: str, file: str) -> str:
    if "does not exist" in error or "there is no" in error:
        return f"nothing has run for this file yet, or it names another table or region: kainite run -p {file}"
    return f"see what of AWS this host reaches with these credentials: kainite doctor -p {file}"
