"""Checks on a replica: tables that are not live, and the comparison with the source. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kainite.base.words import are, counted
from kainite.observe.check import Check, Level, spoken
from kainite.verdict.facts import ReplicaFacts

_REMEDIES: Final = {
    "different": "kainite verify -p {file} shows the rows, with --repair it sets them to what the source has",
    "unsure": "retry or discard the failed units (kainite log show -p {file} --status failed), and compare again",
    "incomplete": "kainite verify -p {file} names the tables that were not compared, and why",
}


def replica_checks(replica: ReplicaFacts, file: str = "FILE") -> Iterator[Check]:
    """Yields the checks on a replica.

    Args:
        replica: what the target tells.
        file: the settings file, for the remedies.
    """
    if replica.error:
        yield Check("replica", Level.NOTE, f"the target was not asked for its tables: {replica.error}")
        return
    if replica.load or replica.failed or replica.given_up or replica.loading:
        yield _tables(replica, file)
    if replica.verdict or replica.trouble or replica.every is not None:
        yield _verification(replica, file)


def _tables(replica: ReplicaFacts, file: str) -> Check:
    if replica.given_up:
        table, cause = replica.given_up[0]
        return Check("replica", Level.DEGRADED, f"table {table} was given up{_more(replica.given_up)}: {cause}",
                     f"kainite replicate reload {table} -p {file}: nothing else mends it")  # fmt: skip
    if replica.failed:
        table, cause = replica.failed[0]
        return Check("replica", Level.DEGRADED, f"table {table} failed{_more(replica.failed)}: {cause}",
                     f"mend the cause, then kainite replicate reload {table} -p {file}")  # fmt: skip
    if replica.loading:
        names = ", ".join(replica.loading[:3]) + (" …" if len(replica.loading) > 3 else "")
        ranges, tables = replica.ranges_left, len(replica.loading)
        left = f"; {counted(ranges, 'range')} of rows {are(ranges)} left" if ranges else ""
        loaded = f"{counted(tables, 'table')} {are(tables)} being loaded ({names}){left}"
        return Check("replica", Level.NOTE, loaded,
                     f"kainite replicate status -p {file} tells how far it is")  # fmt: skip
    return Check("replica", Level.OK, f"the target is {replica.load}")


def _more(tables: Sequence[object]) -> str:
    return f", and {len(tables) - 1} more" if len(tables) > 1 else ""


def _verification(replica: ReplicaFacts, file: str) -> Check:
    if replica.verdict and not replica.passed:
        told = f"the latest comparison, {spoken(replica.age or 0)} ago: {replica.summary}"
        remedy = _REMEDIES.get(replica.verdict, "kainite verify -p {file}")
        return Check("verification", Level.DEGRADED, told, remedy.format(file=file))
    if replica.is_late:
        since = "never" if replica.good_age is None else f"{spoken(replica.good_age)} ago"
        why = f"; the latest try: {replica.trouble}" if replica.trouble else ""
        told = f"each {spoken(replica.every or 0)} the target is to be compared; a comparison last passed {since}{why}"
        remedy = f"does the duty verify run (kainite fleet duties -p {file})? kainite verify -p {file} compares now"
        return Check("verification", Level.DEGRADED, told, remedy)
    if replica.trouble:
        return Check("verification", Level.NOTE, f"the latest try came to no result: {replica.trouble}")
    return Check("verification", Level.OK, f"compared {spoken(replica.age or 0)} ago: {replica.summary}")
