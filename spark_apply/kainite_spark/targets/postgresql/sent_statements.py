"""Judges the answers to the statements of one transaction of units."""

from __future__ import annotations

from dataclasses import dataclass, field

import psycopg
from psycopg import errors

from kainite.base.errors import TargetError
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.postgresql.claims import WriteClaim
from kainite_spark.targets.postgresql.column_types import changed
from kainite_spark.targets.postgresql.errors import about_own_tables, about_units
from kainite_spark.targets.postgresql.rendering import fixed_columns
from kainite_spark.targets.statements.planner import Statement
from kainite_spark.targets.statements.row_counts import check_rows


class OutdatedTypesError(Exception):
    """Columns have got other types than those that the transaction's statements spell."""


@dataclass(slots=True)
class SentStatements:
    """The statements that a transaction has sent, with their results."""

    claim: WriteClaim
    catalogue: Catalogue
    claimed: psycopg.Cursor | None = None
    types: psycopg.Cursor | None = None
    hooks: psycopg.Cursor | None = None
    cursors: list[tuple[Statement, psycopg.Cursor]] = field(default_factory=list)

    def check(self) -> None:
        """Raises unless every statement touched a row for every delta and the fence was right."""
        if self._fence_lost():
            raise self.claim.lost
        if self.types is not None and changed(self.types):
            raise OutdatedTypesError
        for statement, cursor in self.cursors:
            shape = statement.shape
            check_rows(statement, cursor.rowcount, fixed_columns(shape, self.catalogue.tables[shape.table]))

    def failure(self, error: psycopg.Error) -> TargetError:
        """Returns Kainite's error for an error in the pipeline; a lost fence comes first, as it explains all others."""
        if self._fence_lost():
            return self.claim.lost
        if isinstance(error, errors.UniqueViolation) and error.diag.table_name == "kainite_applied":
            return self.claim.repeated
        if self.claimed is None or self.claimed.pgresult is None:
            return about_own_tables(error)
        failed = (statement.shape.table for statement, cursor in self.cursors if cursor.pgresult is None)
        return about_units(error, next(failed, None))

    def _fence_lost(self) -> bool:
        cursor = self.claimed
        return cursor is not None and cursor.pgresult is not None and cursor.rowcount != self.claim.rows
