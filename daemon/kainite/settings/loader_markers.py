"""How the program of ``target=exec:COMMAND`` is spoken to."""

from __future__ import annotations

from dataclasses import replace

from kainite.settings.sections.apply import ApplySettings
from kainite.settings.sections.markers import MarkersSettings


def loader_markers(apply: ApplySettings, children: MarkersSettings) -> MarkersSettings:
    """Returns how a loader is spoken to: with its own batches, and the markers of the children."""
    return replace(children, batching=apply.loader_batching, batch_size=apply.loader_batch_size)
