"""Renders the console's templates; makes every text harmless on its way into a page.

Each text that a template shows goes through :func:`kainite.base.redaction.redacted` and
:func:`kainite.base.display.lines`, then is escaped. Values of rows (the filter ``row``) keep what only looks like a
secret, since a person must compare them with the target. What a page sends back (the filter ``exact``) is what it was.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kainite.base import display
from kainite.base.redaction import redacted, without_known
from kainite.console.actions import exact
from kainite.observe.check import Level, spoken

SIGN = {Level.OK: "✓", Level.NOTE: "·", Level.UNKNOWN: "?", Level.DEGRADED: "!", Level.BROKEN: "✕"}


def environment(prefix: str) -> Environment:
    """Returns the templates' environment.

    Args:
        prefix: the path before all paths.
    """
    made = Environment(
        loader=PackageLoader("kainite.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    made.globals["link"] = partial(link, prefix)
    made.globals.update(sign=SIGN, Level=Level)
    made.filters.update(
        row=_row, exact=_exact, total=_total, at=at, ago=_ago, spoken=_spoken, count=_count, short=_short
    )
    return made


def link(prefix: str, *path: str, **query: Any) -> Markup:
    """Returns the address of a page, with what is given of a query."""
    given = {name: value for name, value in query.items() if value not in (None, "", (), [])}
    words = urlencode(given, doseq=True)
    return Markup(escape(f"{prefix}/{'/'.join(quote(part, safe='') for part in path)}{'?' if words else ''}{words}"))


def at(at_ms: int | None) -> str | Markup:
    """Returns a moment as a page shows it: UTC, to the millisecond."""
    if at_ms is None:
        return "–"
    moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    shown = moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{at_ms % 1000:03d}"
    return Markup('<time datetime="{}">{}</time>').format(moment.isoformat(timespec="milliseconds"), shown)


def _ago(seconds: float | None) -> str:
    return "–" if seconds is None else ago(seconds)


def ago(seconds: float) -> str:
    """Returns an age in its largest unit of which there are two."""
    for size, word in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size:,.0f} {word}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def _spoken(seconds: float | None) -> str:
    return "–" if seconds is None else spoken(seconds)


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _short(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _harmless(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return display.lines(redacted(value))
    return "" if value is None else value


def _total(counts: Counter[str]) -> int:
    return counts.total()


def _exact(text: str) -> Markup:
    return escape(exact(text))


def _row(text: str) -> Markup:
    return escape(display.lines(without_known(text)))
