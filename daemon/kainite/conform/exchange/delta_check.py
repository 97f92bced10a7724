"""Checks that a child gives deltas and ends of units, as far as the check needs no target. No I/O."""

from __future__ import annotations

from collections import Counter

import orjson

from kainite.child.markers.misread import why_no_json
from kainite.conform.exchange.transcript import shown
from kainite.uow import exact_json
from kainite.uow.admission import Admission
from kainite.uow.signing import Signing

_NO_UNIT = "a unit without a name"
_MOST = 10
_SHOWN = 100


class DeltaCheck:
    """The deltas that a child emitted or answered in one call, read as the daemon reads them.

    Args:
        for_next_stage: the child's messages go to another stage's stream, so any bytes will do.
    """

    def __init__(self, *, for_next_stage: bool = False) -> None:
        self._for_next_stage = for_next_stage
        self._admission = Admission(Signing(None))
        self._rejects: list[str] = []
        self._lines: list[bytes] = []

    def given(self) -> Counter[bytes]:
        """Returns all deltas and ends so far, and how often each was given; an unreadable line counts as one."""
        return Counter(delta for line in self._lines for delta in _canonical(line))

    def emitted(self, line: bytes) -> None:
        """Takes an emit line."""
        self._lines.append(line)
        self._admission.feed(line)
        rejects = [reject for fragment in self._admission.take(_NO_UNIT) for reject in fragment.rejects]
        self._reject(*(f"{reject.cause}: {shown(reject.line.encode(), _SHOWN)}" for reject in rejects))

    def answered(self, message: bytes) -> None:
        """Takes a message of the markers dialect: one delta, one end of a unit, or whatever the next stage takes."""
        if self._for_next_stage:
            self._lines.append(message)
            return
        try:
            exact_json.loads(message)
        except ValueError:
            self._reject(why_no_json(message))
        else:
            self.emitted(b'{"deltas":[' + message + b"]}")

    def taken(self) -> tuple[str, ...]:
        """Returns the first few texts that are no deltas, each with the reason, and forgets them."""
        rejects, self._rejects = self._rejects, []
        return tuple(rejects)

    def _reject(self, *causes: str) -> None:
        self._rejects += causes[: _MOST - len(self._rejects)]


def _canonical(line: bytes) -> list[bytes]:
    """Returns the deltas of an emit line, each in one spelling, whatever the order of its keys."""
    try:
        return [orjson.dumps(delta, option=orjson.OPT_SORT_KEYS) for delta in exact_json.loads(line)["deltas"]]
    except (ValueError, TypeError, KeyError):
        return [line]
