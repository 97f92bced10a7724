"""Opens a shelf as a target. It takes seven units at once at most."""

from __future__ import annotations

from kainite_spark.targets.contract import Target
from kainite_spark.targets.opener import TargetOpener, TargetRequest
from kainite_spark.targets.sqlite.target import SqliteTarget
from support.made_up_kind.address import path_of


def _open(request: TargetRequest) -> Target:
    return SqliteTarget(path_of(request.url), request.schema())


OPENER = TargetOpener(_open, lambda apply: min(7, apply.group_units))
