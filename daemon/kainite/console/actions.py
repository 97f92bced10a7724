"""What a person asks for on a page: the form becomes an operation of :mod:`kainite.operations`. Pure.

A form is sent twice. The first time the page answers with what the operation would do now and asks; the second time,
with ``sure``, it is carried out. A discard of what a filter selects then has the number that was confirmed: where more
units fit by then, the log's owner refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kainite.base.errors import LogRequestError
from kainite.log.state.unit_filter import UnitFilter, filter_from
from kainite.operations.operation import (
    AnyOperation,
    ChangeDuty,
    DiscardUnits,
    DutyChange,
    HandOverLog,
    MoveDuty,
    PauseApply,
    Rebalance,
    ResumeApply,
    RetryUnits,
    SetDormancy,
    ShutDownWorker,
)

TITLES: Final[Mapping[str, str]] = {
    "retry": "Retry",
    "discard": "Discard",
    "pause": "Pause applying",
    "resume": "Resume applying",
    "hand-over": "Hand the log over",
    "duty": "Change a duty",
    "move": "Move a duty",
    "dormant": "Empty a worker",
    "awake": "Let a worker take duties",
    "shut-down": "Shut a worker down",
    "rebalance": "Rebalance the fleet",
}
"""The operations that pages offer, by the form's field ``do``."""

LOSES: Final = frozenset({"discard", "shut-down"})
"""What cannot be taken back."""

SENT: Final = ("do", "uow", "filter", "duty", "change", "worker")
"""The fields that say what is asked for."""


def operation_of(form: Mapping[str, str]) -> AnyOperation:
    """Returns the operation that a form asks for.

    Raises:
        LogRequestError: it asks for none, or lacks what the operation is about.
    """
    make = _MADE.get(form.get("do", ""))
    if make is None:
        raise LogRequestError(f"{form.get('do', '')[:40]!r} is no operation")
    return make(form)


def _units(form: Mapping[str, str]) -> tuple[tuple[str, ...], UnitFilter]:
    if form.get("uow"):
        return (form["uow"],), UnitFilter()
    return (), filter_from(_needed(form, "filter"))


def _retry(form: Mapping[str, str]) -> AnyOperation:
    names, wanted = _units(form)
    return RetryUnits(names, wanted)


def _discard(form: Mapping[str, str]) -> AnyOperation:
    names, wanted = _units(form)
    sure = form.get("sure", "")
    return DiscardUnits(names, wanted, int(sure) if not names and sure.isdecimal() and len(sure) < 19 else None)


def _duty(form: Mapping[str, str]) -> AnyOperation:
    try:
        change = DutyChange(form.get("change", ""))
    except ValueError as error:
        raise LogRequestError(f"{form.get('change', '')[:40]!r} is nothing that is done to a duty") from error
    return ChangeDuty(_needed(form, "duty"), change)


def _needed(form: Mapping[str, str], name: str) -> str:
    if not form.get(name):
        raise LogRequestError(f"the form lacks {name}")
    return form[name]


_MADE: Final[Mapping[str, Callable[[Mapping[str, str]], AnyOperation]]] = {
    "retry": _retry,
    "discard": _discard,
    "pause": lambda _: PauseApply(),
    "resume": lambda _: ResumeApply(),
    "hand-over": lambda _: HandOverLog(),
    "duty": _duty,
    "move": lambda form: MoveDuty(_needed(form, "duty"), _needed(form, "worker")),
    "dormant": lambda form: SetDormancy(_needed(form, "worker"), True),
    "awake": lambda form: SetDormancy(_needed(form, "worker"), False),
    "shut-down": lambda form: ShutDownWorker(_needed(form, "worker")),
    "rebalance": lambda _: Rebalance(),
}
