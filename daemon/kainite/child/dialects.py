"""The dialects that there are, by the settings' name."""

from __future__ import annotations

from kainite.child.dialect import Dialect
from kainite.child.json_lines import JsonLines
from kainite.child.messages import KCL, V0
from kainite.settings import ChildProtocol


def dialect_of(protocol: ChildProtocol) -> Dialect:
    """A new conversation."""
    match protocol:
        case ChildProtocol.JSON_LINES:
            return JsonLines(KCL)
        case ChildProtocol.JSON_LINES_V0:
            return JsonLines(V0)
