"""Checks that a child gives deltas and ends of units, as far as the check needs no target. No I/O."""

from __future__ import annotations

from kainite.conform.exchange.transcript import shown
from kainite.uow import exact_json
from kainite.uow.admission import Admission
from kainite.uow.signing import Signing

_NO_UNIT = "a unit without a name"
_MOST = 10
_SHOWN = 100


class DeltaCheck:
    """The deltas that a child emitted or answered in one call, read as the daemon reads them."""

    def __init__(self) -> None:
        self._admission = Admission(Signing(None))
        self._rejects: list[str] = []

    def emitted(self, line: bytes) -> None:
        """Takes an emit line."""
        self._admission.feed(line)
        rejects = [reject for fragment in self._admission.take(_NO_UNIT) for reject in fragment.rejects]
        self._reject(*(f"{reject.cause}: {shown(reject.line.encode(), _SHOWN)}" for reject in rejects))

    def answered(self, message: bytes) -> None:
        """Takes a message of the markers dialect: one delta, or one end of a unit."""
        try:
            exact_json.loads(message)
        except ValueError:
            self._reject(f"no JSON, does an EOM stand in its payload?: {shown(message, _SHOWN)}")
        else:
            self.emitted(b'{"deltas":[' + message + b"]}")

    def taken(self) -> tuple[str, ...]:
        """Returns the first few texts that are no deltas, each with the reason, and forgets them."""
        rejects, self._rejects = self._rejects, []
        return tuple(rejects)

    def _reject(self, *causes: str) -> None:
        self._rejects += causes[: _MOST - len(self._rejects)]
