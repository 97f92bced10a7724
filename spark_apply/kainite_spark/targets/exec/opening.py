"""Opens a loader of the user's own as a target."""

from __future__ import annotations

from kainite.base.markers import Batching
from kainite.child.program_lookup import find
from kainite.settings import ApplySettings
from kainite.settings.loader_command import EXEC, command_words
from kainite.settings.loader_markers import loader_markers
from kainite_spark.targets.contract import Target
from kainite_spark.targets.exec.delta_order import DeltaOrder
from kainite_spark.targets.exec.loader import LoaderSettings
from kainite_spark.targets.exec.target import ExecTarget
from kainite_spark.targets.opener import TargetOpener, TargetRequest


def _open(request: TargetRequest) -> Target:
    command = command_words(request.url.removeprefix(EXEC))
    find(command, "target")
    known = request.schema().levels if request.catalogue else request.levels or {}
    markers = loader_markers(request.apply, request.markers)
    loader = LoaderSettings(command, markers, request.apply.loader_timeout)
    return ExecTarget(loader, DeltaOrder(request.catalogue, known))


def _most_units(apply: ApplySettings) -> int:
    """Returns the size of a loader's batch, which alone is loaded all or nothing, if a group may be so large."""
    return 1 if apply.loader_batching is Batching.SINGLE else min(apply.group_units, apply.loader_batch_size)


OPENER = TargetOpener(_open, _most_units)
