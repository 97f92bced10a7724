r"""What a worker is told when it is started: the markers and how batches are made, by templates of the settings.

``{eom}``, ``{eop}``, ``{eob}`` and ``{bnc}`` become a marker's spelling (:mod:`kainite.child.markers.spelling`),
``{batching}`` and ``{batch_size}`` what they say. Braces around anything else stay as they are, so that arguments may
hold JSON; a lower-case word in braces that is none of these is a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kainite.child.markers.spelling import escape

if TYPE_CHECKING:
    from kainite.settings import MarkersSettings

PLACEHOLDERS: Final = ("eom", "eop", "eob", "bnc", "batching", "batch_size")

_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")


def run_instruction(settings: MarkersSettings) -> tuple[tuple[str, ...], dict[str, str]]:
    """Arguments to add to a worker's command, and variables to add to its environment."""
    values = {
        "eom": escape(settings.eom),
        "eop": escape(settings.eop),
        "eob": escape(settings.eob),
        "bnc": escape(settings.bnc),
        "batching": settings.batching.value,
        "batch_size": str(settings.batch_size),
    }
    arguments = tuple(_filled(word, values) for word in settings.arguments)
    return arguments, {name: _filled(template, values) for name, template in settings.environment}


def check_template(text: str) -> None:
    """Raise ``ValueError`` for a placeholder that there is not."""
    for name in _PLACEHOLDER.findall(text):
        if name not in PLACEHOLDERS:
            raise ValueError(f"{{{name}}} is none of {', '.join(f'{{{known}}}' for known in PLACEHOLDERS)}")


def _filled(template: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)
