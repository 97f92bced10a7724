"""Looks at both databases for the tables that can be compared."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from kainite.base.errors import SettingsError, SourceError
from kainite.replicate.compared_tables import ComparedTable, compared_table, hash_probe
from kainite.replicate.ends import ReplicaEnds, both_sessions
from kainite.replicate.tables import ReplicaTable, described, published


def tables_to_compare(ends: ReplicaEnds, only: Sequence[str]) -> tuple[tuple[ComparedTable, ...], dict[str, str]]:
    """Returns the tables that can be compared, and why others cannot.

    Args:
        ends: both databases.
        only: tables, with their schemas where these are not ``public``; empty: all that are published.

    Raises:
        SettingsError: ``only`` names a table that is not published, or the servers hash texts in different ways.
        SourceError: a database does not answer, or nothing is published.
    """
    with both_sessions(ends) as (source, target):
        _check_hashes(source, target)
        found = _wanted(ends, published(source, ends.source.publication), only)
        theirs = described(target, [table.place for table in found])
    compared = {table.full_name: compared_table(table, theirs.get(table.place)) for table in found}
    left_out = {name: why for name, why in compared.items() if isinstance(why, str)}
    return tuple(table for table in compared.values() if not isinstance(table, str)), left_out


def _wanted(ends: ReplicaEnds, found: Sequence[ReplicaTable], only: Sequence[str]) -> Sequence[ReplicaTable]:
    names = {table.full_name for table in found}
    wanted = {name if "." in name else f"public.{name}" for name in only}
    if unknown := sorted(wanted - names):
        raise SettingsError(f"publication {ends.source.publication} has no table {', '.join(unknown)}")
    if not found:
        raise SourceError(f"publication {ends.source.publication} has no table, or does not exist")
    return [table for table in found if not wanted or table.full_name in wanted]


def _check_hashes(source: psycopg.Connection, target: psycopg.Connection) -> None:
    """Raises SettingsError where the servers hash equal texts in different ways."""
    probe = hash_probe().encode()
    (one, encoding), (other, its) = (side.execute(probe).fetchone() or (0, "") for side in (source, target))
    if encoding != its:
        raise SettingsError(
            f"the source's database is encoded in {encoding}, the target's in {its}: texts are hashed as they are"
            " stored, so rows cannot be compared"
        )
    if one != other:
        raise SettingsError("both servers hash texts in different ways (byte orders differ): rows cannot be compared")
