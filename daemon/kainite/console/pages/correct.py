"""A correction that a person makes from a failed unit: its deltas as text to edit, and what the edited ones change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response

from kainite.base import display
from kainite.base.errors import KainiteError, LogRequestError
from kainite.base.redaction import HIDDEN, RowValues, redacted_tree
from kainite.console.observed import ObservedApplication
from kainite.console.pages.frame import PageFrame
from kainite.console.pages.unit import FoundUnit, found_unit
from kainite.console.unit_view import DeltaView, changed_deltas
from kainite.settings import RowDisplay

MOST_EDITED: Final = 60_000
"""Characters of the longest text that is edited here: a form is bounded. Longer ones are sent by the command."""

_MOST_DELTAS: Final = 10_000


def correct(frame: PageFrame, request: Request) -> Response:
    """Shows a failed unit's deltas to be edited."""
    found = found_unit(frame, request)
    problem, text = "", ""
    try:
        text = _text(found)
    except KainiteError as error:
        problem = str(error)
    sent = {"uow": found.row.uow, "name": _unused_name(found.application, found.row.uow), "deltas": text}
    return editing(frame, request, found, sent, problem=problem)


def editing(
    frame: PageFrame, request: Request, found: FoundUnit, sent: Mapping[str, str], *, problem: str = "",
    refusal: str = "", code: int = 200,
) -> Response:  # fmt: skip
    """Returns the page with what was typed.

    Args:
        frame, request: the frame, and the request.
        found: the failed unit.
        sent: the form.
        problem: why the deltas could not be read.
        refusal: why what was sent was not taken.
        code: the status of HTTP.
    """
    text = sent.get("deltas", "")
    return frame.page(
        request, "correct.html", found.application, status=code, row=found.row, sent=sent, problem=problem,
        refusal=refusal, too_long=len(text) > MOST_EDITED, hidden=HIDDEN in text,
        editable=frame.settings.shown_values is RowDisplay.FULL,
    )  # fmt: skip


def changes_of(frame: PageFrame, found: FoundUnit, deltas: str) -> list[DeltaView]:
    """Returns what edited deltas change, beside the unit's own.

    Raises:
        LogRequestError: values are not shown here, or a value that was hidden was not written again.
        KainiteError: the unit's deltas cannot be read.
    """
    if frame.settings.shown_values is not RowDisplay.FULL:
        raise LogRequestError("values are not shown here (consoleValues), so none are edited: kainite uow correct")
    before = found.deltas(_MOST_DELTAS)
    if deltas.count(HIDDEN) > display.as_json(before).count(HIDDEN):
        raise LogRequestError(f"a value is a secret of the settings and stands here as {HIDDEN}: write it again")
    return changed_deltas(before, orjson.loads(deltas))


def _text(found: FoundUnit) -> str:
    shown: Any = redacted_tree(RowValues(found.deltas(_MOST_DELTAS)))
    return display.as_json(shown, orjson.OPT_INDENT_2)


def _unused_name(application: ObservedApplication, uow: str) -> str:
    with application.lock:
        names = (f"{uow}-corrected{'' if number == 1 else f'-{number}'}" for number in range(1, 100))
        return next((name for name in names if application.units.named(name) is None), "")
