"""Lists what settings expose: to other users of the host, and to whoever stands on the way to another one.

``kainite run --check`` and ``kainite apply --check`` print the list; whoever checks more calls :func:`exposures` too.
Only files are looked at; nothing is connected to. An exposure is a warning: nothing is refused for it.

==================================================  ==============================================================
:mod:`~kainite.settings.exposure.finding`           one exposure: what, where, and the remedy
:mod:`~kainite.settings.exposure.secret_files`      files with a secret that others may read; secrets in ``ps``
:mod:`~kainite.settings.exposure.network`           plain text, certificates that nobody checks, open ports
:mod:`~kainite.settings.exposure.folders`           folders with rows into which others may look
==================================================  ==============================================================
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from kainite.settings.exposure.finding import Exposure
from kainite.settings.exposure.folders import open_folders
from kainite.settings.exposure.network import on_the_network
from kainite.settings.exposure.secret_files import in_the_process_list, readable_secrets
from kainite.settings.settings import Settings

__all__ = ["Exposure", "exposures"]


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
