"""What a person asks for on a page: the form becomes an operation of :mod:`kainite.operations`. Pure.

A form is sent twice. The first time the page answers with what the operation would do now and asks; the second time,
with ``sure``, it is carried out. A discard of what a filter selects then has the number that was confirmed: where more
units fit by then, the log's owner refuses.

Pages send what a person does not type (names, filters) as a JSON string in ASCII: a browser changes line ends, and a
page shows no character that turns the direction of writing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Final

from kainite.base.checkpoint import Checkpoint
from kainite.base.errors import LogRequestError
from kainite.console.moments import moment_s
from kainite.leases.administration.reset import parse_position
from kainite.log.state.unit_filter import UnitFilter, filter_from
from kainite.operations.operation import (
    AnyOperation,
    ChangeDuty,
    CorrectUnit,
    DiscardUnits,
    DutyChange,
    HandOverLog,
    MoveDuty,
    MoveLease,
    PauseApply,
    Rebalance,
    ResetCheckpoints,
    RestartChild,
    ResumeApply,
    RetryUnits,
    SetDormancy,
    ShutDownWorker,
    SkipNumbers,
)
from kainite.operations.owners import array_of_deltas

TITLES: Final[Mapping[str, str]] = {
    "retry": "Retry",
    "discard": "Discard",
    "correct": "Send a correction",
    "skip": "Give up numbers",
    "pause": "Pause applying",
    "resume": "Resume applying",
    "hand-over": "Hand the log over",
    "restart-child": "Restart a child",
    "move-lease": "Move a lease",
    "reset": "Reset checkpoints",
    "duty": "Change a duty",
    "move": "Move a duty",
    "dormant": "Empty a worker",
    "awake": "Let a worker take duties",
    "shut-down": "Shut a worker down",
    "rebalance": "Rebalance the fleet",
}
"""The operations that pages offer, by the form's field ``do``."""

LOSES: Final = frozenset({"discard", "skip", "shut-down"})
"""What cannot be taken back."""

SENT: Final = (
    "do", "uow", "filter", "name", "deltas", "number", "shard", "to", "at", "sequence", "force", "duty", "change",
    "worker",
)  # fmt: skip
"""The fields that say what is asked for."""

POSITIONS: Final[Mapping[str, str]] = {
    "TRIM_HORIZON": "the oldest record that the stream has",
    "LATEST": "new records only",
    "at": "records since a time",
    "sequence": "records behind a sequence number",
}
"""Where a reset may lead, by the form's field ``to``."""


def exact(text: str) -> str:
    """Returns a text as a page sends it back, whatever characters it has."""
    return json.dumps(text)


def as_sent(form: Mapping[str, str]) -> dict[str, str]:
    """Returns a form with its texts as they were before :func:`exact`."""
    return {name: _original(value) for name, value in form.items()}


def _original(value: str) -> str:
    if value.startswith('"'):
        try:
            found = json.loads(value)
        except ValueError:
            found = None
        if isinstance(found, str):
            return found
    return value.replace("\r\n", "\n")  # a browser's


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


def _correct(form: Mapping[str, str]) -> AnyOperation:
    try:
        deltas = array_of_deltas(_needed(form, "deltas").encode("utf-8", "replace"))
    except ValueError as error:
        raise LogRequestError(f"the deltas cannot be read: {error}") from error
    return CorrectUnit(_needed(form, "uow"), _needed(form, "name").strip(), deltas)


def _skip(form: Mapping[str, str]) -> AnyOperation:
    number = _needed(form, "number").strip().replace(",", "")
    if not number.isdecimal() or len(number) > 19:
        raise LogRequestError(f"{number[:40]!r} is no number of a unit")
    return SkipNumbers(int(number))


def _reset(form: Mapping[str, str]) -> AnyOperation:
    shards = (form["shard"],) if form.get("shard") else ()
    to = _position(form, bool(shards))
    return ResetCheckpoints(to, shards, force=form.get("force") == "yes")


def _position(form: Mapping[str, str], one_shard: bool) -> Checkpoint | float:
    match form.get("to"):
        case "TRIM_HORIZON" | "LATEST" as word:
            return Checkpoint(word)
        case "at":
            at = moment_s(form.get("at", ""))
            if at is None or not 0 <= at <= time.time():
                raise LogRequestError("give a time between 1970 and now")
            return at
        case "sequence" if one_shard:
            try:
                return parse_position(form.get("sequence", "").strip())
            except ValueError as error:
                raise LogRequestError(str(error)) from error
        case "sequence":
            raise LogRequestError("a sequence number belongs to one shard: reset that shard")
        case _:
            raise LogRequestError("say from where on records are delivered")


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
    "correct": _correct,
    "skip": _skip,
    "restart-child": lambda form: RestartChild(_needed(form, "shard")),
    "move-lease": lambda form: MoveLease(_needed(form, "shard"), _needed(form, "worker")),
    "reset": _reset,
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
