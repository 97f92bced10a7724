"""The settings of the conversation with the program of ``target=exec:COMMAND``."""

from __future__ import annotations

from dataclasses import replace

from kainite.settings.sections.apply import ApplySettings
from kainite.settings.sections.markers import MarkersSettings


def loader_markers(apply: ApplySettings, children: MarkersSettings) -> MarkersSettings:
    """Returns the settings of a loader's conversation: its own batches, and the markers of the children."""
    return replace(children, batching=apply.loader_batching, batch_size=apply.loader_batch_size)
