"""The console of :mod:`kainite.cli.terminal`, which imports rich."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from kainite.base import display
from kainite.base.redaction import redacted


class HarmlessConsole(Console):
    """A console that hides secrets in texts before it wraps them, and shows control characters as escapes.

    Colours and cursor movements of rich itself are no part of a segment's text, and pass.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text):
            renderable = _harmless(renderable)
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=display.lines(segment.text))


def _harmless(text: Text) -> Text:
    plain = display.lines(redacted(text.plain))
    if plain == text.plain:
        return text
    return Text(plain, text.style, justify=text.justify, overflow=text.overflow, no_wrap=text.no_wrap)
