"""Puts together all that settings expose. Looks at files, and at nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping

from kainite.settings.exposure.finding import Exposure
from kainite.settings.exposure.folders import open_folders
from kainite.settings.exposure.network import on_the_network
from kainite.settings.exposure.secret_files import in_the_process_list, readable_secrets
from kainite.settings.settings import Settings


def exposures(settings: Settings, environment: Mapping[str, str] | None = None) -> tuple[Exposure, ...]:
    """Returns what the settings expose.

    Args:
        settings: all settings of an application.
        environment: the variables with which its processes start; ``os.environ`` unless given.
    """
    variables = os.environ if environment is None else environment
    return (
        *readable_secrets(settings, variables),
        *in_the_process_list(settings),
        *on_the_network(settings, variables),
        *open_folders(settings, variables),
    )
