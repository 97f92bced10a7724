"""Makes the dialect that the settings name."""

from __future__ import annotations

from kainite.child.dialect import Dialect
from kainite.child.json_lines.dialect import JsonLines
from kainite.child.json_lines.messages import KCL, V0
from kainite.child.markers.dialect import MarkersDialect
from kainite.settings import ChildProtocol, ChildSettings


def dialect_of(settings: ChildSettings) -> Dialect:
    """Returns a new conversation in the dialect of ``settings.protocol``."""
    match settings.protocol:
        case ChildProtocol.JSON_LINES:
            return JsonLines(KCL)
        case ChildProtocol.JSON_LINES_V0:
            return JsonLines(V0)
        case ChildProtocol.MARKERS:
            return MarkersDialect(settings.markers)
