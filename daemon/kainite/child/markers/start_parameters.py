r"""Makes the arguments and variables that tell a worker at its start the markers and how batches are made.

The settings hold templates. ``{eom}``, ``{eop}``, ``{eob}`` and ``{bnc}`` become a marker's spelling
(:mod:`kainite.base.marker_spelling`), ``{batching}`` and ``{batch_size}`` the settings' values. A lower-case word in
braces that is none of these six is a mistake. All other braces stay as they are, so that arguments may hold JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kainite.base.marker_spelling import escape
from kainite.settings.placeholders import filled

if TYPE_CHECKING:
    from kainite.settings import MarkersSettings


def start_parameters(settings: MarkersSettings) -> tuple[tuple[str, ...], dict[str, str]]:
    """Returns the arguments to add to a worker's command, and the variables to add to its environment."""
    values = {
        "eom": escape(settings.eom),
        "eop": escape(settings.eop),
        "eob": escape(settings.eob),
        "bnc": escape(settings.bnc),
        "batching": settings.batching.value,
        "batch_size": str(settings.batch_size),
    }
    arguments = tuple(filled(word, values) for word in settings.arguments)
    return arguments, {name: filled(template, values) for name, template in settings.environment}
