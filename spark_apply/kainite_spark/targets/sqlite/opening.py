"""Opens a SQLite database file as a target."""

from __future__ import annotations

from kainite.targets.sqlite.address import path_of
from kainite_spark.targets.opener import TargetOpener, TargetRequest
from kainite_spark.targets.sqlite.target import SqliteTarget


def _open(request: TargetRequest) -> SqliteTarget:
    return SqliteTarget(path_of(request.url), request.schema(), request.policy())


OPENER = TargetOpener(_open, hooks=_open)
