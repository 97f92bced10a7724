"""Opens all targets of a settings file as one that refuses units in all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from kainite.settings import Settings
from kainite.settings.targets import assignment_of
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.holding import HoldingTarget
from kainite_spark.targets.several_opening import open_each
from kainite_spark.targets.together.target import TogetherTarget


def open_together(configured: Settings, catalogue: Catalogue, levels: Mapping[str, int]) -> TogetherTarget:
    """Returns the targets of an application with ``targetCommit=together``; opens no connection.

    Arguments and errors as of :func:`~kainite_spark.targets.several_opening.open_each`.
    """
    # The settings name no kind that cannot wait (kainite.settings.targets).
    targets = cast(dict[str, HoldingTarget], open_each(configured, catalogue, levels))
    return TogetherTarget(targets, assignment_of(configured.of_targets))
