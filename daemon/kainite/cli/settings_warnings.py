"""What a command that goes on says of its settings when it starts."""

from __future__ import annotations

import logging

from kainite.base.logs import event
from kainite.settings import Settings

logger = logging.getLogger(__name__)


def tell_warnings(settings: Settings) -> None:
    """Logs each warning of the settings: what is allowed and may surprise, and keys that are constants now."""
    for warning in settings.warnings:
        event(logger, logging.WARNING, "surprising setting", setting=warning)
