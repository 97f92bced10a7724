"""What befalls a source, its slot and the offset of an extraction: a person or a machine does it to the real ones too.

=====================  ===============================================================================================
source restarts        nobody reaches it for some seconds
source cuts            the connection of whoever reads the slot ends
promoted               a standby takes over that has all that was sent to the slot's readers, as
                       ``synchronized_standby_slots`` sees to it; its copy of the slot may be older. What else has
                       committed is lost
promoted behind        a standby takes over that lacks a transaction which was extracted
another server         the URL reaches another cluster, whose WAL is longer
slot lost              the slot was invalidated: the server needed the room
slot dropped           the slot is not there any more
slot made anew         a slot of the same name, which sends what commits from now on
older offset           a person puts an older copy of the offset file back, and starts the extraction again
=====================  ===============================================================================================

The first three are to be lived with. The others must be refused, with :data:`WORDS` in the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from simulation.extract_oracle import ExtractOracle
from simulation.extract_source import Server, SimSource, Slot
from simulation.extract_wire import Committed, lsn_of

WORDS: Final = {
    "promoted behind": "are not on this server",
    "another server": "with the system identifier",
    "slot lost": "was invalidated",
    "slot dropped": "does not exist on the source server",
    "slot made anew": "that was asked for",
    "older offset": "that was asked for",
}
RESTART_S: Final = 8.0


class Trouble:
    """Makes trouble.

    Args:
        source, oracle: of the run.
        put_back: puts an older place into an offset file, while no extraction runs.

    Attributes:
        refused: words of the error that must come; empty as long as nothing has to be refused.
    """

    def __init__(
        self, source: SimSource, oracle: ExtractOracle, put_back: Callable[[Path, dict[str, Any]], None]
    ) -> None:
        self.refused = ""
        self._source = source
        self._oracle = oracle
        self._put_back = put_back

    def befalls(self, what: str, amount: float) -> None:
        match what:
            case "source restarts":
                self._restart(amount)
            case "source cuts":
                self._source.cut("")
            case "promoted":
                self._promote(max(self._source.server.sent, self._oracle.stored_lsn))
            case _ if not self.refused and self._is_refused(what):
                self.refused = WORDS[what]

    def _restart(self, amount: float) -> None:
        server = self._source.server
        server.away = True
        self._source.cut("terminating connection due to administrator command")

        def back() -> None:
            server.away = server is not self._source.server

        self._source.hub.after(min(amount, RESTART_S), back)

    def _is_refused(self, what: str) -> bool:
        """Does it, where it can be done now; returns whether it was."""
        source, server = self._source, self._source.server
        if what == "promoted behind":
            return self._promote_behind()
        if what == "another server":
            return self._replace_by_another()
        if what == "older offset":
            return self._older_offset()
        source.cut("")
        assert server.slot is not None
        if what == "slot lost":
            server.slot.lost = True
        elif what == "slot dropped":
            server.slot = None
        else:
            source.write_other(200)
            server.slot = Slot(server.written, server.written)
        return True

    def _promote_behind(self) -> bool:
        """Promotes a standby that has all but the last unit before the stored place."""
        if not self._furthest or not (number := self._furthest[-1]["number"]):
            return False
        self._promote(self._source.units[number - 1].commit_lsn - 16, keep=True)
        return True

    def _replace_by_another(self) -> bool:
        """Lets the URL reach another cluster, once an offset says which one it was read from."""
        if not self._oracle.stored:
            return False
        start = self._oracle.stored_lsn
        slot = Slot(start, start)
        self._source.replace(Server("7390000000000000002", 1, start + 50_000, slot=slot, sent=start, strange=True))
        return True

    def _older_offset(self) -> bool:
        """Puts back the newest place that is before the slot's."""
        slot = self._source.server.slot
        assert slot is not None
        found = False
        for file, stored in self._oracle.stored.items():
            older = [place for place in stored if lsn_of(place["lsn"]) < slot.confirmed]
            if older:
                self._put_back(file, older[-1])
                found = True
        return found

    @property
    def _furthest(self) -> list[dict[str, Any]]:
        """Returns the places of the offset file that has come furthest."""
        return max(self._oracle.stored.values(), key=lambda stored: lsn_of(stored[-1]["lsn"]), default=[])

    def _promote(self, left_at: int, *, keep: bool = False) -> None:
        """Puts a standby in the source's place whose WAL leaves the timeline at an LSN.

        Args:
            left_at: what ends before it is there.
            keep: what the standby lacks is still what has to be extracted.
        """
        source, old = self._source, self._source.server
        assert old.slot is not None
        wal: list[Committed] = [one for one in old.wal if one.end_lsn <= left_at]
        confirmed = min(old.slot.earlier, left_at)
        slot = replace_slot(old.slot, confirmed)
        # A standby that is so far behind has not followed all promotions: it leaves the timeline that it was on.
        left = {timeline: lsn for timeline, lsn in old.left_at.items() if lsn <= left_at}
        left[max(left, default=0) + 1] = left_at
        source.replace(
            Server(old.system, old.timeline + 1, left_at, wal, left, slot, sent=left_at, xid=old.xid, strange=keep)
        )
        if not keep:
            source.units[:] = [one for one in source.units if one.end_lsn <= left_at]
            source.numbers = {one.name: number for number, one in enumerate(source.units, 1)}


def replace_slot(slot: Slot, confirmed: int) -> Slot:
    """Returns a standby's copy of a slot."""
    return replace(slot, confirmed=confirmed, earlier=confirmed, sender=None)
