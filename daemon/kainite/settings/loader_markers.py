"""How the program of ``target=exec:COMMAND`` is spoken to."""

from __future__ import annotations

from dataclasses import replace

from kainite.settings.sections.apply import ApplySettings
from kainite.settings.sections.markers import MarkersSettings


def loader_markers(apply: ApplySettings, children: MarkersSettings) -> MarkersSettings:
    """Returns how a loader is spoken to: with its own batches and markers, and as the children where it has none."""
    return replace(
        children,
        batching=apply.loader_batching,
        batch_size=apply.loader_batch_size,
        eom=apply.loader_eom or children.eom,
        eop=apply.loader_eop or children.eop,
        eob=apply.loader_eob or children.eob,
        bnc=apply.loader_bnc or children.bnc,
    )
