"""Which transactions of a server have been read, as MariaDB spells it: the newest GTID of each domain. Pure."""

from __future__ import annotations


class GtidPosition:
    """The newest GTID of each domain.

    Args:
        text: the GTIDs before, behind commas.
    """

    def __init__(self, text: str) -> None:
        self._newest = {_domain(gtid): gtid for gtid in text.split(",") if gtid}

    @property
    def text(self) -> str:
        """Returns the GTIDs behind commas, in the order of their domains."""
        return ",".join(gtid for _, gtid in sorted(self._newest.items()))

    def add(self, gtid: str) -> None:
        """Takes a transaction's GTID."""
        self._newest[_domain(gtid)] = gtid


def _domain(gtid: str) -> str:
    """Returns what numbers transactions: MariaDB's domain, or MySQL's server."""
    return gtid.partition("-")[0] if gtid.count("-") == 2 else gtid.rpartition(":")[0]
